// SPDX-License-Identifier: Apache-2.0
// Operands copied into a workspace, so that TMA can walk the copy: what a copy kernel takes, and
// how it shares an operand out among blocks.
#pragma once

#include <device/abi/host_device.hpp>

namespace gemmery::abi {

/// A copy kernel: what it is compiled for.
struct RepackDesign {
  int element_bytes;  // 1, 2 or 4
  bool
      has_any_strides;  // false: adjacent elements of a line of the copy are adjacent in the source
  bool has_pointers = false;  // true: a source may be an array of pointers
};

/// One operand. Its source is read along its near index, along which elements are closer to each
/// other. The copy has lines, of adjacent elements and zeros up to a whole unit: along the near
/// index, or where the source is transposed, along the far one.
struct RepackOperand {
  const void* source;
  Int64 batch_stride;  // of the source, in elements
  Int64 near_stride;
  Int64 far_stride;
  Int64 target;   // where the copy begins in the workspace, in bytes
  Int64 pitch;    // from line to line of it; matrices of a batch follow each other
  unsigned near;  // extents
  unsigned far;
  unsigned near_tiles;
  unsigned far_tiles;
  unsigned unit_bits;  // a tile has 2^unit_bits units along the near index
  unsigned is_transposed;
};

/// Blocks take tiles in order: those of operand 0, then those of operand 1.
struct RepackParams {
  void* workspace;
  RepackOperand operand[2];
  unsigned first_tiles;  // of operand 0
};

constexpr int repack_threads = 256;
constexpr int repack_unit_bytes = 16;  // what a thread reads, and stores, at a time
constexpr int repack_units_per_thread = 4;

GEMMERY_HOST_DEVICE
constexpr int elements_per_unit(int element_bytes) { return repack_unit_bytes / element_bytes; }

// --- the tile that is transposed ----------------------------------------------------------------
//
// A row of it in shared memory has one far index, and as many near ones as fill 32 banks: 8 units.
// A warp writes 4 rows at a time. It reads what becomes 16 bytes of a line from as many rows as
// there are elements in them: 8 lanes those of 8 chunks of a line, the others those of the next 3
// lines. The words of a row are swizzled by the number of its chunk, so that these lanes meet in no
// bank.

constexpr int repack_row_bytes = 128;

/// Rows of the tile, and elements of one.
GEMMERY_HOST_DEVICE
constexpr int repack_side(int element_bytes) { return repack_row_bytes / element_bytes; }

/// Where a word of a row lies, in bytes from the beginning of the tile.
GEMMERY_HOST_DEVICE
constexpr unsigned repack_offset(unsigned row, unsigned word, int element_bytes) {
  const auto width = static_cast<unsigned>(element_bytes);
  const unsigned chunk = row / (repack_unit_bytes / width);
  return row * repack_row_bytes + (word ^ chunk * width) * 4;
}

/// The word of its unit that a lane writes in its turn-th of 4 stores to a row.
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
