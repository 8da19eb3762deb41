// SPDX-License-Identifier: Apache-2.0
// The order of codes of 4 and 8 bits for which a weight is prepared: a warp reads its fragments of
// 32 k by one load of 16 bytes in each lane, and blocks of k follow each other in memory.
//
//   lines (rows of A, columns of B) in groups of 32 (4 bits) or 16 (8 bits): one group after the
//   other; in it blocks of 32 k; in a block lanes 0 to 31; in a lane 16 bytes: the eight k from
//   8 * (lane % 4) on, of lines lane / 4, lane / 4 + 8, …
#pragma once

#include <device/abi/host_device.hpp>

namespace gemmery::abi {

inline constexpr int prepared_k = 32;             // of a block
inline constexpr int prepared_block_bytes = 512;  // 16 of each lane

/// Lines of a group.
GEMMERY_HOST_DEVICE
constexpr int prepared_lines(int bits) { return 128 / bits; }

/// Codes of 4 bits are decoded in pairs (j, j + 4) of a register: adjacent k are stored there,
/// unless they are looked up in a table, which decodes adjacent ones.
GEMMERY_HOST_DEVICE
constexpr int prepared_place(int k, int bits, bool has_table) {
  return bits == 4 && !has_table ? k % 2 * 4 + k / 2 : k;
}

/// The place of a code, in codes. `k_extent` is that of the matrix.
GEMMERY_HOST_DEVICE
constexpr Int64 prepared_index(Int64 line, Int64 k, Int64 k_extent, int bits, bool has_table) {
  const int lines = prepared_lines(bits);
  const Int64 group = line / lines * lines * k_extent;
  const Int64 block = k / prepared_k * prepared_k * lines;
  const Int64 lane = line % 8 * 4 + k % prepared_k / 8;
  return group + block + lane * lines + line % lines / 8 * 8 +
         prepared_place(static_cast<int>(k % 8), bits, has_table);
}

}  // namespace gemmery::abi
