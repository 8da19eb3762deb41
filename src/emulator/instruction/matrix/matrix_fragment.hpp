// SPDX-License-Identifier: Apache-2.0
// How the lanes of a warp hold its part of a matrix: one rule for all types, in 32-bit words of
// packed rows (64-bit ones for f64). (PTX ISA, "Matrix Fragments for mma.m16n8k16" and the others.)
#pragma once

#include <cstdint>
#include <cstring>

#include "emulator/machine/operation.hpp"

namespace gemmery::emulator {

struct FragmentPlace {
  std::uint32_t row = 0;
  std::uint32_t word = 0;  // of the row
};

// A, 8 or 16 rows: of register `index`. With 16 rows, every second register is eight rows below.
constexpr FragmentPlace place_in_a(std::uint32_t rows, std::uint32_t index,
                                   std::uint32_t lane) noexcept {
  const std::uint32_t halves = rows / 8;
  return {lane / 4 + 8 * (index % halves), lane % 4 + 4 * (index / halves)};
}
// B, 8 columns: "row" is the column.
constexpr FragmentPlace place_in_b(std::uint32_t index, std::uint32_t lane) noexcept {
  return {lane / 4, lane % 4 + 4 * index};
}
// C and D: of register `index`; `per_row` registers hold what a lane has of 8 columns of a row (2,
// or 1 where a register holds two f16), `halves` such parts of rows follow each other (16 rows: 2).
// The word counts columns, or pairs of them.
constexpr FragmentPlace place_in_c(std::uint32_t per_row, std::uint32_t halves, std::uint32_t index,
                                   std::uint32_t lane) noexcept {
  const std::uint32_t part = index / per_row;
  return {lane / 4 + 8 * (part % halves),
          part / halves * 4 * per_row + per_row * (lane % 4) + index % per_row};
}

// In all of them four lanes after each other share a row: what a register's lanes hold of A or B,
// from that of lane 0 on, into rows of `row_words`.
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
