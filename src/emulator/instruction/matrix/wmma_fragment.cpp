// SPDX-License-Identifier: Apache-2.0
#include "emulator/instruction/matrix/wmma_fragment.hpp"

#include <algorithm>
#include <cstring>

namespace gemmery::emulator {

namespace {

constexpr std::uint32_t halves_registers = 8;  // of A and B in f16, whatever the shape

WmmaFragment fragment_of(std::uint32_t rows, std::uint32_t columns, std::uint32_t element_bits) {
  WmmaFragment fragment;
  fragment.rows = rows;
  fragment.unit_bytes = std::max(element_bits / 8, 1u);
  fragment.row_units = columns * element_bits / 8 / fragment.unit_bytes;
  fragment.register_bytes = std::max(fragment.unit_bytes, 4u);
  fragment.register_count = fragment.slots() * fragment.unit_bytes / fragment.register_bytes;
  fragment.group = fragment.units_per_register();
  return fragment;
}

}  // namespace

WmmaFragment fragment_of_ab(const MatrixShape& shape, MatrixElement element, bool is_a) {
  WmmaFragment fragment = fragment_of(is_a ? shape.m : shape.n, shape.k, bits_of(element));
  // More than they need: the rest holds the same elements again.
  if (element == MatrixElement::f16) fragment.register_count = halves_registers;
  return fragment;
}

std::uint32_t bits_of(Accumulator accumulator) noexcept {
  if (accumulator == Accumulator::f64) return 64;
  return accumulator == Accumulator::f16 ? 16 : 32;
}

WmmaFragment fragment_of_c(const MatrixShape& shape, Accumulator accumulator) {
  WmmaFragment fragment = fragment_of(shape.m, shape.n, bits_of(accumulator));
  fragment.group = 2;
  return fragment;
}

// --- registers ----------------------------------------------------------------------------------

namespace {

// Where a lane holds a unit, from the beginning of the lanes of its register.
std::size_t place_in_lanes(const WmmaFragment& fragment, std::uint32_t slot,
                           std::uint32_t lane) noexcept {
  return std::size_t{lane} * fragment.register_bytes +
         std::size_t{slot % fragment.units_per_register()} * fragment.unit_bytes;
}

}  // namespace

void collect(const WmmaFragment& fragment, const Warp& warp, const std::vector<OperandSlot>& slots,
             WmmaMatrix& to) {
  for (std::uint32_t slot = 0; slot < fragment.slots(); ++slot) {
    const auto* const lanes =
        lanes_at<std::byte>(warp, slots[slot / fragment.units_per_register()]);
    for (std::uint32_t lane = 0; lane < lanes_per_warp; ++lane)
      std::memcpy(to.data() + std::size_t{fragment.unit_at(slot, lane)} * fragment.unit_bytes,
                  lanes + place_in_lanes(fragment, slot, lane), fragment.unit_bytes);
  }
}

void distribute(const WmmaFragment& fragment, Warp& warp, const std::vector<OperandSlot>& slots,
                const WmmaMatrix& from) {
  const std::uint32_t all = fragment.register_count * fragment.units_per_register();
  for (std::uint32_t slot = 0; slot < all; ++slot) {
    auto* const lanes = lanes_to<std::byte>(warp, slots[slot / fragment.units_per_register()]);
    for (std::uint32_t lane = 0; lane < lanes_per_warp; ++lane)
      std::memcpy(lanes + place_in_lanes(fragment, slot, lane),
                  from.data() + std::size_t{fragment.unit_at(slot % fragment.slots(), lane)} *
                                    fragment.unit_bytes,
                  fragment.unit_bytes);
  }
}

DefinedUnits defined_units(const WmmaFragment& fragment, const Warp& warp,
                           const std::vector<OperandSlot>& slots) {
  DefinedUnits defined(fragment.slots());
  for (std::uint32_t slot = 0; slot < fragment.slots(); ++slot)
    defined[slot] = warp.defined_lanes(slots[slot / fragment.units_per_register()]);
  return defined;
}

void set_defined(const WmmaFragment& fragment, Warp& warp, const std::vector<OperandSlot>& slots,
                 const DefinedUnits& defined) {
  for (std::uint32_t index = 0; index < slots.size(); ++index) {
    LaneMask lanes = all_lanes;
    for (std::uint32_t unit = 0; unit < fragment.units_per_register(); ++unit)
      lanes &= defined[(index * fragment.units_per_register() + unit) % fragment.slots()];
    warp.set_defined(slots[index], all_lanes, lanes);
  }
}

std::uint32_t defined_rows(const WmmaFragment& fragment, const DefinedUnits& defined) {
  std::uint32_t rows = ~0u;
  for (std::uint32_t unit = 0; unit < fragment.rows * fragment.row_units; ++unit)
    if ((defined[fragment.slot_of(unit)] >> fragment.lane_of(unit) & 1) == 0)
      rows &= ~(1u << unit / fragment.row_units);
  return rows;
}

}  // namespace gemmery::emulator
