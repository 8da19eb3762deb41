// SPDX-License-Identifier: Apache-2.0
// Repacking: operands are copied into the workspace in lines that TMA can load. The parameters of
// the copy kernel, and how it distributes an operand over blocks.
#pragma once

#include <device/abi/host_device.hpp>

namespace gemmery::abi {

/// The compile-time properties of a copy kernel.
struct RepackDesign {
  int element_bytes;  // 1, 2 or 4
  bool
      has_any_strides;  // false: adjacent elements of a line of the copy are adjacent in the source
  bool has_pointers = false;  // true: a source may be an array of pointers
};

/// One operand. Its near index is the one along which elements are closer together, and the source
/// is read along it. The copy consists of lines of adjacent elements, padded with zeros to whole
/// units. A line runs along the near index; if the source is transposed, along the far index.
struct RepackOperand {
  const void* source;
  Int64 batch_stride;  // of the source, in elements
  Int64 near_stride;
  Int64 far_stride;
  Int64 target;   // where the copy begins in the workspace, in bytes
  Int64 pitch;    // from line to line of the copy; the matrices of a batch follow each other
  unsigned near;  // extents
  unsigned far;
  unsigned near_tiles;
  unsigned far_tiles;
  unsigned unit_bits;  // a tile has 2^unit_bits units along the near index
  unsigned is_transposed;
};

/// Blocks process tiles in order: those of operand 0, then those of operand 1.
struct RepackParams {
  void* workspace;
  RepackOperand operand[2];
  unsigned first_tiles;  // of operand 0
};

inline constexpr int repack_threads = 256;
inline constexpr int repack_unit_bytes = 16;  // what a thread reads, and stores, at a time
inline constexpr int repack_units_per_thread = 4;

GEMMERY_HOST_DEVICE
constexpr int elements_per_unit(int element_bytes) { return repack_unit_bytes / element_bytes; }

// --- the tile that is transposed ----------------------------------------------------------------
//
// A row of the tile in shared memory has one far index, and as many near indices as fill 32 banks:
// 8 units. A warp writes 4 rows at a time. The 16 bytes of a line of the copy come from as many
// rows as they have elements. A warp reads 8 chunks of each of 4 lines at a time, one chunk per
// lane. The words of a row are swizzled by the number of its chunk, so that these lanes access
// different banks.

inline constexpr int repack_row_bytes = 128;

/// Rows of the tile, and elements of one.
GEMMERY_HOST_DEVICE
constexpr int repack_side(int element_bytes) { return repack_row_bytes / element_bytes; }

/// Offset of a word of a row, in bytes from the beginning of the tile.
GEMMERY_HOST_DEVICE
constexpr unsigned repack_offset(unsigned row, unsigned word, int element_bytes) {
  const auto width = static_cast<unsigned>(element_bytes);
  const unsigned chunk = row / (repack_unit_bytes / width);
  return row * repack_row_bytes + (word ^ chunk * width) * 4;
}

/// The word of its unit that a lane writes in the turn-th of its 4 stores to a row.
GEMMERY_HOST_DEVICE
constexpr unsigned repack_word(unsigned row, unsigned turn) { return (row + turn) % 4; }

// --- tiles --------------------------------------------------------------------------------------

/// Far indices of a tile.
GEMMERY_HOST_DEVICE
constexpr unsigned far_of_tile(const RepackOperand& operand, int element_bytes) {
  if (operand.is_transposed != 0) return static_cast<unsigned>(repack_side(element_bytes));
  return static_cast<unsigned>(repack_threads * repack_units_per_thread) >> operand.unit_bits;
}

/// Lines of one matrix of the copy.
GEMMERY_HOST_DEVICE
constexpr unsigned lines_of(const RepackOperand& operand) {
  return operand.is_transposed != 0 ? operand.near : operand.far;
}

}  // namespace gemmery::abi
