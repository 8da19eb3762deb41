// SPDX-License-Identifier: Apache-2.0
// Loads the A registers of a wgmma, which takes A only K-major, from 8-bit elements that are
// M-major in shared memory: the addresses that lanes read, and the byte permutations.
//
// TMA has copied an atom: lines of 128 rows, one line for each k, in the 128-byte swizzle. One
// ldmatrix of 16-bit elements, transposed, loads 32 k of a warp's 16 rows: a lane gets four words,
// each with two k of the same two adjacent rows. Byte permutations turn two words into four k of
// either row. The four results are the lane's A registers of a wgmma, whose rows i and i + 8 are
// rows 2 i and 2 i + 1 of the tile.
//
// A matrix of ldmatrix is eight lines. Lanes 0 and 1 of a quad get their lower k first, lanes 2 and
// 3 their upper k. So the eight lines differ modulo 8, and no access has a bank conflict.
#pragma once

#include <device/abi/host_device.hpp>

namespace gemmery::abi {

[[maybe_unused]] constexpr unsigned fragment_k = 32;     // of one wgmma
[[maybe_unused]] constexpr unsigned fragment_rows = 16;  // of a warp
inline constexpr unsigned fragment_line_bytes = 128;

/// The line (of 32, one for each k) whose address a lane gives to ldmatrix.
GEMMERY_HOST_DEVICE
constexpr unsigned fragment_line(unsigned lane) {
  const unsigned quarter = lane % 8 / 2;  // of 16 k: a lane's registers hold four
  const unsigned pair = (lane / 8 % 2) ^ (quarter / 2);
  return lane / 16 * 16 + 4 * quarter + 2 * pair + lane % 2;
}

/// Offset in the atom of the 16 rows that the lane addresses in its line: the chunk-th 16 rows.
GEMMERY_HOST_DEVICE
constexpr unsigned fragment_offset(unsigned lane, unsigned chunk) {
  const unsigned line = fragment_line(lane);
  return line * fragment_line_bytes + ((chunk ^ line % 8) << 4);
}

/// Selectors of the byte permutations that turn two words of 16 k into four k of the first of two
/// rows, and of the second.
struct FragmentSelectors {
  unsigned first;
  unsigned second;
};

GEMMERY_HOST_DEVICE
constexpr FragmentSelectors fragment_selectors(unsigned lane) {
  return lane % 4 < 2 ? FragmentSelectors{0x6420U, 0x7531U} : FragmentSelectors{0x2064U, 0x3175U};
}

}  // namespace gemmery::abi
