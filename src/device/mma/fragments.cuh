// SPDX-License-Identifier: Apache-2.0
// Fragments of a warp for mma.sync, loaded from tiles in shared memory in the layout of
// abi::StagedOperand.
//
// A lane's addresses differ from its first one by constants (rows) and by XOR with constants
// (chunks), since tiles, warps and swizzles are powers of two.
#pragma once

#include <device/abi/sm80_design.hpp>
#include <device/abi/staged_operand.hpp>
#include <device/ptx/shared_memory.cuh>

namespace gemmery::device {

/// A warp's view of one operand's tile.
/// `count`: blocks of 16 rows of A (8 for m8n8k4 of float64), or of 8 columns of B. `step_k`: the
/// instruction's k.
template <const abi::StagedOperand& operand, abi::Side side, int count, int step_k>
class FragmentReader {
  static constexpr int row_bytes = operand.row_bytes();
  static constexpr int element_bytes = abi::bytes_of(operand.dtype);
  static constexpr bool is_double = operand.dtype == abi::DType::float64;
  static constexpr abi::FragmentLoad form = operand.load;
  static constexpr int block = side == abi::Side::a && !(is_double && step_k == 4) ? 16 : 8;
  static constexpr int parts = block / 8;
  static constexpr int code_words = abi::bits_of(operand.dtype) / 4;  // of eight codes

 public:
  /// 32-bit registers of a block: for float64 one number for every four k; for float32 that is
  /// converted to 16 bits two numbers for each register of the mma.
  static constexpr int registers =
      (form == abi::FragmentLoad::chunks                                            ? 4
       : form == abi::FragmentLoad::prepared                                        ? code_words
       : form == abi::FragmentLoad::codes                                           ? 2
       : form == abi::FragmentLoad::nibbles                                         ? 1
       : is_double                                                                  ? step_k / 2
       : form == abi::FragmentLoad::pairs || form == abi::FragmentLoad::split_words ? 4
                                                                                    : 2) *
      parts;
  using Block = unsigned[registers];
  using Fragments = Block[count];

  /// `first`: the warp's first row of A (column of B) in the tile; `first_k`: its first k.
  __device__ __forceinline__ FragmentReader(int first, int first_k, int lane)
      : first_(static_cast<unsigned>(
            abi::fragment_offset(abi::value_of<operand>(), side, first, first_k, lane))) {}

  /// The fragments of one step of k, from the tile at this shared address.
  __device__ __forceinline__ void load(Fragments& values, unsigned tile, int step) const {
    if constexpr (form == abi::FragmentLoad::matrices) load_matrices(values, tile, step);
    if constexpr (form == abi::FragmentLoad::transposed_matrices)
      load_transposed(values, tile, step);
    if constexpr (form == abi::FragmentLoad::words) load_words(values, tile, step);
    if constexpr (form == abi::FragmentLoad::chunks || form == abi::FragmentLoad::codes ||
                  form == abi::FragmentLoad::nibbles)
      load_adjacent(values, tile, step);
    if constexpr (form == abi::FragmentLoad::prepared) load_prepared(values, tile, step);
    if constexpr (form == abi::FragmentLoad::pairs || form == abi::FragmentLoad::split_words) {
#pragma unroll
      for (int index = 0; index < count; ++index) load_block(values[index], tile, step, index);
    }
  }

  /// The fragments of one block, if blocks are loaded one by one.
  __device__ __forceinline__ void load_block(Block& values, unsigned tile, int step,
                                             int index) const {
    static_assert(form == abi::FragmentLoad::pairs || form == abi::FragmentLoad::split_words);
    if constexpr (form == abi::FragmentLoad::pairs) load_pairs(values, tile, step, index);
    if constexpr (form == abi::FragmentLoad::split_words) load_split(values, tile, step, index);
  }

 private:
  /// The address that is `rows` rows and `chunks` chunks further. `chunks` has no bit in common
  /// with the lane's first chunk.
  __device__ unsigned moved(unsigned tile, int rows, int chunks) const {
    return (first_ ^ static_cast<unsigned>(chunks * abi::chunk_bytes)) + tile +
           static_cast<unsigned>(rows * row_bytes);
  }

  __device__ __forceinline__ void load_matrices(Fragments& values, unsigned tile, int step) const {
    constexpr int step_chunks = step_k * element_bytes / abi::chunk_bytes;
    if constexpr (side == abi::Side::a) {
#pragma unroll
      for (int index = 0; index < count; ++index)
        ptx::ldmatrix_x4(values[index], moved(tile, 16 * index, step * step_chunks));
    } else {
#pragma unroll
      for (int index = 0; index < count; index += 2) {
        unsigned both[4];
        ptx::ldmatrix_x4(both, moved(tile, 8 * index, step * step_chunks));
        give(values, index, both);
      }
    }
  }

  __device__ __forceinline__ void load_transposed(Fragments& values, unsigned tile,
                                                  int step) const {
    if constexpr (side == abi::Side::a) {
#pragma unroll
      for (int index = 0; index < count; ++index)
        ptx::ldmatrix_x4_trans(values[index], moved(tile, step * step_k, 2 * index));
    } else {
#pragma unroll
      for (int index = 0; index < count; index += 2) {
        unsigned both[4];
        ptx::ldmatrix_x4_trans(both, moved(tile, step * step_k, index));
        give(values, index, both);
      }
    }
  }

  /// Loads eight adjacent k of each row of a block; rows are the extent.
  __device__ __forceinline__ void load_adjacent(Fragments& values, unsigned tile, int step) const {
    constexpr int step_chunks = step_k / operand.chunk_elements();
    constexpr int words = registers / parts;
#pragma unroll
    for (int index = 0; index < count; ++index) {
#pragma unroll
      for (int part = 0; part < parts; ++part) {
        const auto loaded = ptx::ld_shared_registers<4 * words>(
            moved(tile, block * index + 8 * part, step * step_chunks));
#pragma unroll
        for (int at = 0; at < words; ++at) values[index][part * words + at] = loaded.words[at];
      }
    }
  }

  /// Loads 16 bytes: eight k of each of several lines, eight lines apart.
  __device__ __forceinline__ void load_prepared(Fragments& values, unsigned tile, int step) const {
    constexpr int loaded_parts = 4 / code_words;
    static_assert(count * parts % loaded_parts == 0, "a load has codes of whole blocks");
#pragma unroll
    for (int first = 0; first < count * parts; first += loaded_parts) {
      const unsigned row = static_cast<unsigned>(8 * first / operand.row_lines() * row_bytes);
      const auto loaded = ptx::ld_shared_registers<16>(
          first_ + tile + row +
          static_cast<unsigned>(abi::value_of<operand>().run_bytes(step * step_k)));
#pragma unroll
      for (int at = 0; at < 4; ++at) {
        const int part = first + at / code_words;
        values[part / parts][part % parts * code_words + at % code_words] = loaded.words[at];
      }
    }
  }

  /// Stores two blocks of B from one load.
  __device__ static void give(Fragments& values, int index, const unsigned (&both)[4]) {
    values[index][0] = both[0];
    values[index][1] = both[1];
    values[index + 1][0] = both[2];
    values[index + 1][1] = both[3];
  }

  /// Loads float32 for tf32 (k = t and t + 4) or float64 (k = t, t + 4 …); rows are k.
  __device__ __forceinline__ void load_words(Fragments& values, unsigned tile, int step) const {
    constexpr int block_chunks = 8 / operand.chunk_elements();
#pragma unroll
    for (int index = 0; index < count; ++index) {
      if constexpr (is_double) {
#pragma unroll
        for (int at = 0; at < step_k / 4 * parts; ++at)
          put(values[index], 2 * at,
              ptx::ld_shared_registers<8>(moved(tile, step * step_k + at / parts * 4,
                                                (index * parts + at % parts) * block_chunks)));
      } else {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
#pragma unroll
          for (int part = 0; part < parts; ++part)
            values[index][k * parts + part] = ptx::ld_shared<4>(
                moved(tile, step * step_k + 4 * k, (index * parts + part) * block_chunks));
        }
      }
    }
  }

  /// Loads float64, or two float32 of adjacent k (2t and 2t + 8); rows are the extent.
  __device__ __forceinline__ void load_pairs(Block& values, unsigned tile, int step,
                                             int index) const {
    constexpr int step_chunks = step_k * element_bytes / abi::chunk_bytes;
    if constexpr (is_double) {
#pragma unroll
      for (int at = 0; at < step_k / 4 * parts; ++at)
        put(values, 2 * at,
            ptx::ld_shared_registers<8>(
                moved(tile, block * index + at % parts * 8, step * step_chunks + at / parts * 2)));
    } else {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
#pragma unroll
        for (int part = 0; part < parts; ++part)
          put(values, 2 * (k * parts + part),
              ptx::ld_shared_registers<8>(
                  moved(tile, block * index + 8 * part, step * step_chunks + 2 * k)));
      }
    }
  }

  /// Loads float32 of adjacent k; rows are k.
  __device__ __forceinline__ void load_split(Block& values, unsigned tile, int step,
                                             int index) const {
    constexpr int block_chunks = 8 / operand.chunk_elements();
#pragma unroll
    for (int k = 0; k < 2; ++k) {
#pragma unroll
      for (int part = 0; part < parts; ++part) {
#pragma unroll
        for (int of_pair = 0; of_pair < 2; ++of_pair)
          values[2 * (k * parts + part) + of_pair] =
              load_odd(tile, step * step_k + 8 * k, of_pair, (index * parts + part) * block_chunks);
      }
    }
  }
  /// Both k of a pair have the same swizzle.
  __device__ unsigned load_odd(unsigned tile, int k, int of_pair, int chunks) const {
    return ptx::ld_shared<4>(moved(tile, k + of_pair, chunks));
  }

  __device__ static void put(Block& values, int at, const ptx::Registers<8>& pair) {
    values[at] = pair.words[0];
    values[at + 1] = pair.words[1];
  }

  unsigned first_;  // offset in a tile, in bytes
};

}  // namespace gemmery::device
