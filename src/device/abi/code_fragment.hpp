// SPDX-License-Identifier: Apache-2.0
// Addresses of the codes that become the A registers of wgmmas of 16-bit floats.
//
// TMA has copied rows of 64 k, 64 bytes of 8-bit codes or 32 bytes of 4-bit ones, in the swizzle of
// that width. A wgmma takes 16 k. Of a row a lane has the k numbered 2 q, 2 q + 1 and 2 q + 8,
// 2 q + 9 (q = lane % 4): two units of two adjacent codes, a load of one or two bytes each. A lane
// has two rows of a warp's 16. No access has a bank conflict (tests count them): the eight rows
// that lanes read at once are adjacent or, if a lane's two rows are, even ones in lanes 0 to 15 and
// odd ones in the others.
#pragma once

#include <device/abi/host_device.hpp>

namespace gemmery::abi {

inline constexpr unsigned code_line_k = 64;
inline constexpr unsigned code_step_k = 16;  // of one wgmma

GEMMERY_HOST_DEVICE
constexpr unsigned code_line_bytes(unsigned bits) { return code_line_k * bits / 8; }

/// The offset of a lane's unit in the tile: `half` of the step-th 16 k of a row.
GEMMERY_HOST_DEVICE
constexpr unsigned code_offset(unsigned bits, unsigned row, unsigned lane, unsigned step,
                               unsigned half) {
  const unsigned line = code_line_bytes(bits);
  const unsigned swizzle = row * line / 128 % (line / 16);
  const unsigned byte = step * 2 * bits + half * bits + lane % 4 * bits / 4;
  return row * line + ((byte / 16 ^ swizzle) * 16) + byte % 16;
}

/// True for lanes that read the second of their two rows first.
GEMMERY_HOST_DEVICE
constexpr bool reads_second_row_first(bool has_row_pairs, unsigned lane) {
  return has_row_pairs && lane >= 16;
}

/// The row of 16 that a lane reads first, and the distance in bytes to its other one: added, or if
/// the two rows are adjacent, exclusive-ored to the address.
GEMMERY_HOST_DEVICE
constexpr unsigned first_code_row(bool has_row_pairs, unsigned lane) {
  return has_row_pairs ? lane / 4 * 2 + lane / 16 : lane / 4;
}

/// What is exclusive-ored to an address of the first 16 k for those of another step, and what is
/// added.
GEMMERY_HOST_DEVICE
constexpr unsigned code_step_flip(unsigned bits, unsigned step) {
  return step * 2 * bits / 16 * 16;
}
GEMMERY_HOST_DEVICE
constexpr unsigned code_step_offset(unsigned bits, unsigned step) { return step * 2 * bits % 16; }

}  // namespace gemmery::abi
