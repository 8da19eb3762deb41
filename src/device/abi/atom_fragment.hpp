// SPDX-License-Identifier: Apache-2.0
// The way of 8-bit elements of A, of which rows are adjacent in shared memory, to the registers of
// a wgmma, which wants k adjacent: where the lanes of a warp read, and how they order bytes.
//
// TMA brought an atom: lines of 128 rows, one for each k, in the 128-byte swizzle. One ldmatrix of
// 16-bit elements, transposed, brings a warp 32 k of its 16 rows: a lane gets four words, each of
// two k of the same two adjacent rows. Byte permutations make of them four k of either row, twice:
// its four registers of a wgmma, whose rows i and i + 8 are rows 2 i and 2 i + 1 of the tile.
//
// A matrix of ldmatrix is eight lines. Lanes of the first two pairs of a quad get their lower k
// first, the others their upper ones: then the eight lines are different modulo 8, and no access
// has a bank conflict.
#pragma once

#include <device/abi/host_device.hpp>

namespace gemmery::abi {

[[maybe_unused]] constexpr unsigned fragment_k = 32;     // of one wgmma
[[maybe_unused]] constexpr unsigned fragment_rows = 16;  // of a warp
constexpr unsigned fragment_line_bytes = 128;

/// The line of 32, counted by k, whose address a lane gives to ldmatrix.
GEMMERY_HOST_DEVICE
constexpr unsigned fragment_line(unsigned lane) {
  const unsigned quarter = lane % 8 / 2;  // of 16 k: a lane's registers hold four
  const unsigned pair = (lane / 8 % 2) ^ (quarter / 2);
  return lane / 16 * 16 + 4 * quarter + 2 * pair + lane % 2;
}

/// Offset in the atom of what that lane reads of its line: the chunk-th 16 rows.
GEMMERY_HOST_DEVICE
constexpr unsigned fragment_offset(unsigned lane, unsigned chunk) {
  const unsigned line = fragment_line(lane);
  return line * fragment_line_bytes + ((chunk ^ line % 8) << 4);
}

/// Selectors of the byte permutations by which the two words of 16 k become four k of the first of
/// two rows, and of the second.
struct FragmentSelectors {
  unsigned first;
  unsigned second;
};

GEMMERY_HOST_DEVICE
constexpr FragmentSelectors fragment_selectors(unsigned lane) {
  return lane % 4 < 2 ? FragmentSelectors{0x6420U, 0x7531U} : FragmentSelectors{0x2064U, 0x3175U};
}

}  // namespace gemmery::abi
