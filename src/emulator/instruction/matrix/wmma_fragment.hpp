// SPDX-License-Identifier: Apache-2.0
// The distribution of wmma fragments over lanes. No manual specifies it, so programs may only rely
// on loads, stores and products agreeing, and on accumulators of one shape having their elements in
// the same places in f16 and f32. Both hold here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/instruction/matrix/matrix_form.hpp"
#include "emulator/instruction/matrix/matrix_registers.hpp"

namespace gemmery::emulator {

// A matrix in units: elements, or bytes of packed ones. A has rows of k, B columns of k, C rows of
// n.
struct WmmaFragment {
  std::uint32_t rows = 0;
  std::uint32_t row_units = 0;
  std::uint32_t unit_bytes = 0;
  std::uint32_t register_bytes = 4;
  std::uint32_t register_count = 0;
  // Units of a row that a lane holds side by side: those of a register, and two of C, so that its
  // elements are in the same places in f16 and f32.
  std::uint32_t group = 1;

  std::uint32_t slots() const noexcept { return rows * row_units / lanes_per_warp; }
  std::uint32_t units_per_register() const noexcept { return register_bytes / unit_bytes; }
  // The unit, counted along the rows, in a slot of a lane, and the other way round.
  std::uint32_t unit_at(std::uint32_t slot, std::uint32_t lane) const noexcept {
    return (slot / group * lanes_per_warp + lane) * group + slot % group;
  }
  std::uint32_t slot_of(std::uint32_t unit) const noexcept {
    return unit / (lanes_per_warp * group) * group + unit % group;
  }
  std::uint32_t lane_of(std::uint32_t unit) const noexcept { return unit / group % lanes_per_warp; }
  std::uint32_t bytes_per_lane() const noexcept { return register_bytes * register_count; }
};

WmmaFragment fragment_of_ab(const MatrixShape& shape, MatrixElement element, bool is_a);
WmmaFragment fragment_of_c(const MatrixShape& shape, Accumulator accumulator);
std::uint32_t bits_of(Accumulator accumulator) noexcept;

// The rows of a matrix, one behind the other. None has more bytes.
using WmmaMatrix = std::array<std::byte, 2048>;

// From the registers of all lanes, and into them; those that hold elements again included.
void collect(const WmmaFragment& fragment, const Warp& warp, const std::vector<OperandSlot>& slots,
             WmmaMatrix& to);
void distribute(const WmmaFragment& fragment, Warp& warp, const std::vector<OperandSlot>& slots,
                const WmmaMatrix& from);

// By slot: the lanes whose unit is defined.
using DefinedUnits = std::vector<LaneMask>;
DefinedUnits defined_units(const WmmaFragment& fragment, const Warp& warp,
                           const std::vector<OperandSlot>& slots);
void set_defined(const WmmaFragment& fragment, Warp& warp, const std::vector<OperandSlot>& slots,
                 const DefinedUnits& defined);
// Bit r: all of row r is defined. At most 32 rows.
std::uint32_t defined_rows(const WmmaFragment& fragment, const DefinedUnits& defined);

}  // namespace gemmery::emulator
