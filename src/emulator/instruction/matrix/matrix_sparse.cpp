// SPDX-License-Identifier: Apache-2.0
#include "emulator/instruction/matrix/matrix_sparse.hpp"

#include <cstddef>
#include <cstring>

#include "emulator/instruction/matrix/matrix_form.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint32_t bits_per_chunk = 4;

struct Indexes {
  std::uint32_t first = 0, second = 0;  // of a chunk's units; second: only of chunks of four
  bool is_valid = false;
};

Indexes read_indexes(std::uint32_t bits, std::uint32_t chunk_units, bool is_ordered) noexcept {
  constexpr std::uint32_t first_of_two = 0b0100, second_of_two = 0b1110;
  if (chunk_units == 2)
    return {bits == second_of_two, 0, bits == first_of_two || bits == second_of_two};
  const std::uint32_t first = bits & 3, second = bits >> 2 & 3;
  return {first, second, is_ordered ? first < second : first != second};
}

}  // namespace

SparseRows::SparseRows(MatrixElement element, std::uint32_t k, std::uint32_t selector) noexcept
    : selector_(selector) {
  const std::uint32_t bits = bits_of(element);
  unit_bytes_ = bits == 4 ? 1 : bits / 8;
  chunk_units_ = element == MatrixElement::tf32 ? 2 : 4;
  chunks_ = k * bits / 8 / unit_bytes_ / chunk_units_;
  is_row_whole_ = unit_bytes_ == 1;
  lanes_per_selector_ = chunks_ / 4;
}

LaneMask SparseRows::lanes() const noexcept {
  LaneMask mask = ((LaneMask{1} << lanes_per_selector_) - 1) << selector_ * lanes_per_selector_;
  for (int shift = 4; shift < 32; shift *= 2) mask |= mask << shift;
  return mask;
}

SparseRows::Place SparseRows::place_of(std::uint32_t row, std::uint32_t chunk) const noexcept {
  const std::uint32_t first = row % 8 * lanes_per_group + selector_ * lanes_per_selector_;
  const std::uint32_t half = row / 8;
  if (is_row_whole_) return {first + 2 * (chunk / 8) + half, bits_per_chunk * (chunk % 8)};
  return {first + chunk / 4, 16 * half + bits_per_chunk * (chunk % 4)};
}

bool SparseRows::select(const std::uint32_t* metadata, bool is_ordered, std::uint32_t row,
                        std::uint32_t columns, const void* from, void* to) const noexcept {
  const std::size_t chunk_bytes = std::size_t{chunk_units_} * unit_bytes_;
  const auto* const all = static_cast<const std::byte*>(from);
  auto* const kept = static_cast<std::byte*>(to);
  for (std::uint32_t chunk = 0; chunk < chunks_; ++chunk) {
    const Place place = place_of(row, chunk);
    const Indexes at =
        read_indexes(metadata[place.lane] >> place.shift & 0xf, chunk_units_, is_ordered);
    if (!at.is_valid) return false;
    for (std::uint32_t column = 0; column < columns; ++column) {
      const std::size_t index = std::size_t{column} * chunks_ + chunk;
      const std::byte* const units = all + index * chunk_bytes;
      std::byte* const half = kept + index * chunk_bytes / 2;
      std::memcpy(half, units + at.first * unit_bytes_, unit_bytes_);
      if (chunk_units_ == 4)
        std::memcpy(half + unit_bytes_, units + at.second * unit_bytes_, unit_bytes_);
    }
  }
  return true;
}

}  // namespace gemmery::emulator
