// SPDX-License-Identifier: Apache-2.0
// How a warp's lanes hold a matrix fragment: one rule for all types, in 32-bit words of packed rows
// (64-bit words for f64). (PTX ISA, "Matrix Fragments for mma.m16n8k16" and the others.)
#pragma once

#include <cstdint>
#include <cstring>

#include "emulator/machine/operation.hpp"

namespace gemmery::emulator {

struct FragmentPlace {
  std::uint32_t row = 0;
  std::uint32_t word = 0;  // of the row
};

// A with 8 or 16 rows: the place of register `index`. With 16 rows, every second register is eight
// rows below.
constexpr FragmentPlace place_in_a(std::uint32_t rows, std::uint32_t index,
                                   std::uint32_t lane) noexcept {
  const std::uint32_t halves = rows / 8;
  return {lane / 4 + 8 * (index % halves), lane % 4 + 4 * (index / halves)};
}
// B with 8 columns; `row` means the column.
constexpr FragmentPlace place_in_b(std::uint32_t index, std::uint32_t lane) noexcept {
  return {lane / 4, lane % 4 + 4 * index};
}
// C and D: the place of register `index`. A lane holds `per_row` registers of 8 columns of a row
// (2, or 1 if a register holds two f16); `halves` groups of eight rows follow each other (2 for 16
// rows). `word` counts columns, or pairs of columns.
constexpr FragmentPlace place_in_c(std::uint32_t per_row, std::uint32_t halves, std::uint32_t index,
                                   std::uint32_t lane) noexcept {
  const std::uint32_t part = index / per_row;
  return {lane / 4 + 8 * (part % halves),
          part / halves * 4 * per_row + per_row * (lane % 4) + index % per_row};
}

// In all of these fragments four consecutive lanes share a row. Copies what the lanes of a register
// of A or B hold, starting with lane 0's place, into rows of `row_words`.
template <class Word>
inline void copy_fragment(const Word* lanes, const FragmentPlace& first, std::uint32_t row_words,
                          Word* to) noexcept {
  to += first.row * row_words + first.word;
  for (std::uint32_t lane = 0; lane < lanes_per_warp; lane += 4) {
    std::memcpy(to, lanes + lane, 4 * sizeof *lanes);
    to += row_words;
  }
}

}  // namespace gemmery::emulator
