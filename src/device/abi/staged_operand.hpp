// SPDX-License-Identifier: Apache-2.0
// The layout of a tile of A or B in shared memory for mma.sync: rows of 16-byte chunks whose order
// within a row depends on the row (a swizzle), so that neither copies nor fragment loads have bank
// conflicts. Host and device share the arithmetic; a host test counts the conflicts.
#pragma once

#include <device/abi/dtype.hpp>
#include <device/abi/host_device.hpp>
#include <device/abi/prepared_layout.hpp>

namespace gemmery::abi {

inline constexpr int chunk_bytes = 16;

/// The position of a chunk in its row is its number XOR swizzle.of(row).
struct ChunkSwizzle {
  int row_shift;
  int row_mask;
  int chunk_shift;

  GEMMERY_HOST_DEVICE
  constexpr int of(int row) const { return ((row >> row_shift) & row_mask) << chunk_shift; }
  /// The number of rows after which it repeats.
  GEMMERY_HOST_DEVICE
  constexpr int period() const { return (row_mask + 1) << row_shift; }

  bool operator==(const ChunkSwizzle&) const = default;
};

/// The instruction that reads fragments from the tile; it determines the places of chunks.
enum class FragmentLoad : unsigned char {
  matrices,             // ldmatrix: eight rows of one chunk each
  transposed_matrices,  // the same, transposed: rows are k, elements have 16 bits
  words,                // elements of 32 or 64 bits one by one, rows are k
  pairs,                // 64 bits at a time, rows are the extent: float64, or two float32
  split_words,          // float32 of two k that become one register; rows are k
  // Of operands of which one is decoded; rows are the extent, and a lane reads eight adjacent k:
  chunks,   // a chunk of 16-bit numbers
  codes,    // 8 bytes of codes
  nibbles,  // 4 bytes of codes
  // Codes in the order of prepared_layout.hpp; rows are groups of lines.
  prepared
};

/// The swizzle under which the lanes of one load access different banks. `chunks`: per row.
GEMMERY_HOST_DEVICE
constexpr ChunkSwizzle swizzle_for(FragmentLoad load, int chunks) {
  // A warp reads 512 adjacent bytes.
  if (load == FragmentLoad::prepared) return {.row_shift = 0, .row_mask = 0, .chunk_shift = 0};
  // Two adjacent chunks of four rows make up the 128 bytes of a wavefront.
  if (load == FragmentLoad::words || load == FragmentLoad::pairs)
    return {.row_shift = 0, .row_mask = 3, .chunk_shift = 1};
  // The four lanes of a row read 64 bytes; two rows make up a wavefront.
  if (load == FragmentLoad::chunks)
    return {.row_shift = 0, .row_mask = chunks > 4 ? 1 : 0, .chunk_shift = 2};
  // The four lanes of a row read 32 bytes, two of its chunks.
  if (load == FragmentLoad::codes) {
    if (chunks >= 8) return {.row_shift = 0, .row_mask = 3, .chunk_shift = 1};
    return {.row_shift = 1, .row_mask = chunks == 4 ? 1 : 0, .chunk_shift = 1};
  }
  // These are every second row.
  if (load == FragmentLoad::split_words) return {.row_shift = 1, .row_mask = 3, .chunk_shift = 1};
  // One chunk of eight rows fills a wavefront; rows shorter than 128 bytes share a line of banks.
  if (chunks >= 8) return {.row_shift = 0, .row_mask = 7, .chunk_shift = 0};
  const int shift = chunks == 4 ? 1 : chunks == 2 ? 2 : 3;
  return {.row_shift = shift, .row_mask = chunks - 1, .chunk_shift = 0};
}

/// A tile of one operand: `extent` rows of A (columns of B) by `k`.
struct StagedOperand {
  DType dtype;
  bool is_k_adjacent;  // in global memory
  int vector_bytes;    // of the widest access to global memory along the adjacent index
  int extent;
  int k;
  FragmentLoad load;

  /// Elements of 8 bits that are contiguous along the extent are transposed during the copy: no
  /// instruction reads fragments of them otherwise.
  GEMMERY_HOST_DEVICE
  constexpr bool is_transposed() const { return !is_k_adjacent && bytes_of(dtype) == 1; }
  /// True if a row of the staged tile is one m (or n), with k along it.
  GEMMERY_HOST_DEVICE
  constexpr bool is_k_staged() const { return is_k_adjacent || is_transposed(); }
  GEMMERY_HOST_DEVICE
  constexpr bool is_prepared() const { return load == FragmentLoad::prepared; }
  /// Rows of A (columns of B) in a row of the staged tile.
  GEMMERY_HOST_DEVICE
  constexpr int row_lines() const { return is_prepared() ? prepared_lines(bits_of(dtype)) : 1; }
  /// Bytes of so many k (or extents), along which elements are adjacent.
  GEMMERY_HOST_DEVICE
  constexpr int run_bytes(int elements) const {
    return is_prepared() ? elements * prepared_block_bytes / prepared_k
                         : bytes_of_run(dtype, elements);
  }
  GEMMERY_HOST_DEVICE
  constexpr int rows() const { return is_k_staged() ? extent / row_lines() : k; }
  GEMMERY_HOST_DEVICE
  constexpr int row_bytes() const { return run_bytes(is_k_staged() ? k : extent); }
  GEMMERY_HOST_DEVICE
  constexpr int chunks() const { return row_bytes() / chunk_bytes; }
  GEMMERY_HOST_DEVICE
  constexpr int chunk_elements() const { return 8 * chunk_bytes / bits_of(dtype); }
  GEMMERY_HOST_DEVICE
  constexpr int bytes() const { return rows() * row_bytes(); }
  GEMMERY_HOST_DEVICE
  constexpr ChunkSwizzle swizzle() const { return swizzle_for(load, chunks()); }
  /// Bytes from the start of the tile to a chunk.
  GEMMERY_HOST_DEVICE
  constexpr int offset(int row, int chunk) const {
    return row * row_bytes() + ((chunk ^ swizzle().of(row)) * chunk_bytes);
  }
  /// True if cp.async copies it; accesses of fewer than 4 bytes and transposed tiles go through
  /// registers.
  GEMMERY_HOST_DEVICE
  constexpr bool is_async() const { return vector_bytes >= 4 && !is_transposed(); }

  bool operator==(const StagedOperand&) const = default;
};

/// The operand of an mma: A has rows of 16 (8 of float64), B columns of 8.
enum class Side : unsigned char { a, b };

/// The address of a lane's first access to a warp's fragments, in bytes from the start of the tile:
/// for ldmatrix the row that the lane addresses, otherwise the data that it loads. `first`: the
/// warp's first row of A (column of B); `first_k`: its first k.
GEMMERY_HOST_DEVICE
constexpr int fragment_offset(const StagedOperand& operand, Side side, int first, int first_k,
                              int lane) {
  const int group = lane / 4;
  const int in_group = lane % 4;
  const int eighth = lane / 8 % 2;  // the matrix of ldmatrix.x4 of which the lane addresses a row
  const int half = lane / 16;
  const int elements = operand.chunk_elements();
  const auto in_chunk = [&](int element) {
    return bytes_of_run(operand.dtype, element % elements);
  };
  switch (operand.load) {
    case FragmentLoad::matrices: {
      // A: rows, rows + 8, then the next chunk of both; B: both chunks of a block, then of the
      // next.
      const int row = lane % 8 + 8 * (side == Side::a ? eighth : half);
      const int chunk = side == Side::a ? half : eighth;
      return operand.offset(first + row, first_k / elements + chunk);
    }
    case FragmentLoad::transposed_matrices: {
      const int k = lane % 8 + 8 * (side == Side::a ? half : eighth);
      const int chunk = side == Side::a ? eighth : half;
      return operand.offset(first_k + k, first / elements + chunk);
    }
    case FragmentLoad::pairs: {
      const int k = first_k + in_group * (operand.dtype == DType::float64 ? 1 : 2);
      return operand.offset(first + group, k / elements) + in_chunk(k);
    }
    case FragmentLoad::chunks:
    case FragmentLoad::codes:
    case FragmentLoad::nibbles: {
      const int k = first_k + 8 * in_group;
      return operand.offset(first + group, k / elements) + in_chunk(k);
    }
    case FragmentLoad::prepared:
      return first / operand.row_lines() * operand.row_bytes() + operand.run_bytes(first_k) +
             lane * chunk_bytes;
    case FragmentLoad::words:
    case FragmentLoad::split_words:
      break;
  }
  const int k = first_k + in_group * (operand.load == FragmentLoad::split_words ? 2 : 1);
  return operand.offset(k, (first + group) / elements) + in_chunk(first + group);
}

}  // namespace gemmery::abi
