// SPDX-License-Identifier: Apache-2.0
// Transposition in shared memory of an operand that wgmma takes only K-major: the addresses that
// each lane reads and writes. TMA has copied an atom, a square of 128 bytes of rows (or columns) by
// as many elements of k, with one line for each k; afterwards it has one line for each row, in the
// same place. Both use the 128-byte swizzle: the 16-byte chunk c of line i is at chunk c ^ i % 8.
// No access of a warp has a bank conflict.
//
// Elements of 8 bits, 128x128: a warp reads and writes squares of 32x32 in pairs. The squares of a
// pair are each other's mirror image, or both lie on the diagonal. A lane transposes blocks of 4x4:
// it reads four words, of four k, and writes four words, of four rows. The order of these words
// differs from lane to lane, by `k_turn` and `row_turn`.
//
// Elements of 32 bits, 32x32: in each of 32 steps the lanes read a diagonal of the square and write
// its mirror image, which is a diagonal that was read in the same step.
#pragma once

#include <device/abi/host_device.hpp>

namespace gemmery::abi {

inline constexpr unsigned transposed_line_bytes = 128;
inline constexpr unsigned lanes_of_transposition = 32;

/// The squares of an atom of 8-bit elements, of which a warp takes two at a time.
inline constexpr unsigned square_pairs = 8;

/// A square by its lines of k and its 32 columns of rows, from 0 to 3 each.
struct Square {
  unsigned k;
  unsigned row;
};

/// The first or second (`which`) square of a pair: mirror images, or two of the diagonal.
GEMMERY_HOST_DEVICE
constexpr Square square_of(unsigned pair, unsigned which) {
  // A digit for each pair: (0,1) (0,2) (0,3) (1,2) (1,3) (2,3), then (0,0) (1,1), and (2,2) (3,3).
  constexpr unsigned k_digits[2] = {0x20211000U, 0x31332321U};
  constexpr unsigned row_digits[2] = {0x20332321U, 0x31211000U};
  return {.k = k_digits[which] >> 4 * pair & 3U, .row = row_digits[which] >> 4 * pair & 3U};
}

/// The coordinates of a lane in a square that determine its addresses: a block of 4x4 at word `row`
/// of lines that begin at 4 * (4 * half + k), for both halves.
struct TransposingLane {
  unsigned k;         // 0 to 3
  unsigned row;       // 0 to 7: a word of a line of k
  unsigned k_turn;    // in step s it reads line s ^ k_turn of its four
  unsigned row_turn;  // in step s it writes row s ^ row_turn of its four
};

GEMMERY_HOST_DEVICE
constexpr TransposingLane transposing_lane(unsigned lane) {
  const unsigned k = lane % 4;
  const unsigned row = lane / 4;
  const unsigned far = row / 4 * 2;
  return {.k = k, .row = row, .k_turn = k / 2 + far, .row_turn = row / 2 % 2 + far};
}

/// Offset in the atom of the word that a lane reads in a step (0 to 3) of a square's half.
GEMMERY_HOST_DEVICE
constexpr unsigned read_offset(const TransposingLane& lane, const Square& square, unsigned half,
                               unsigned step) {
  const unsigned line = 4 * lane.k + lane.k_turn;  // of 16, without the step
  const unsigned chunk = lane.row / 4 ^ line % 8;  // of the square's two, swizzled
  const unsigned own = line * transposed_line_bytes + chunk * 16 + lane.row % 4 * 4;
  return (own ^ square.row * 32 ^ step * (transposed_line_bytes + 16)) +
         (square.k * 32 + half * 16) * transposed_line_bytes;
}

/// Offset of the word that it writes, into the mirror image of the square.
GEMMERY_HOST_DEVICE
constexpr unsigned write_offset(const TransposingLane& lane, const Square& square, unsigned half,
                                unsigned step) {
  const unsigned line = 4 * lane.row + lane.row_turn;  // of 32
  const unsigned own = line * transposed_line_bytes + line % 8 * 16 + lane.k * 4;
  return (own ^ (2 * square.k + half) * 16 ^ step * (transposed_line_bytes + 16)) +
         square.row * 32 * transposed_line_bytes;
}

/// Selectors of the byte permutations that turn four words, in the order in which a lane reads
/// them, into four words in the order in which it writes them.
struct TransposingSelectors {
  unsigned pairs[2];  // of two words read: their bytes of the first two rows, of the others
  unsigned words[2];  // of two such: the first row, the second
};

GEMMERY_HOST_DEVICE
constexpr TransposingSelectors transposing_selectors(const TransposingLane& lane) {
  const unsigned even = lane.k_turn % 2 * 4;  // the position of a pair's word of even k
  const unsigned odd = 4 - even;
  TransposingSelectors selectors{};
  for (unsigned pair = 0; pair < 2; ++pair) {
    const unsigned row = 2 * pair ^ lane.row_turn;
    selectors.pairs[pair] =
        (even + row) | (odd + row) << 4 | (even + (row ^ 1U)) << 8 | (odd + (row ^ 1U)) << 12;
  }
  selectors.words[0] = lane.k_turn / 2 == 0 ? 0x5410U : 0x1054U;
  selectors.words[1] = lane.k_turn / 2 == 0 ? 0x7632U : 0x3276U;
  return selectors;
}

/// Offset in an atom of 32-bit elements of the word that a lane reads in a step (0 to 31), and of
/// the word that it writes.
GEMMERY_HOST_DEVICE
constexpr unsigned diagonal_offset(unsigned lane) {
  return lane * transposed_line_bytes + (lane / 4 ^ lane % 8) * 16 + lane % 4 * 4;
}
GEMMERY_HOST_DEVICE
constexpr unsigned read_step(unsigned step) { return step * transposed_line_bytes + step % 8 * 16; }
GEMMERY_HOST_DEVICE
constexpr unsigned write_step(unsigned step) { return step * 4; }

}  // namespace gemmery::abi
