// SPDX-License-Identifier: Apache-2.0
// Writes a thread's share of a staging tile: out's values, computed from accumulators, rounded,
// packed, and written to swizzled shared memory.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_shared.hpp>
#include <device/epilogue/output_place.cuh>
#include <device/ptx/convert.cuh>
#include <device/ptx/convert_sequences.cuh>
#include <device/ptx/shared_memory.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

template <const abi::Sm90Design& design>
class StagingWriter {
 public:
  static constexpr int columns = abi::staging_columns(design);
  /// Accumulator registers of a thread in one staging tile.
  static constexpr int staging_registers = columns / (design.accumulator == DType::float16 ? 4 : 2);
  static constexpr bool is_wide = abi::bytes_of(design.out) == 4;
  static constexpr bool is_narrow = abi::bytes_of(design.out) == 1;
  /// Words of a thread's results in 16 columns, in the order of writing. Results narrower than 32
  /// bits are packed in pairs: rows 0-7 and 8-15 of 8 columns, then of the next 8.
  static constexpr int words = is_wide ? 8 : 4;

  /// Offset of the first chunk that a lane writes, from the warp's first row of a staging tile.
  /// Other chunks of the same row, or of the row 8 below, have the same swizzle: their addresses
  /// follow by XOR of the chunk numbers.
  __device__ static unsigned first_chunk(unsigned lane) {
    const unsigned row = abi::first_row_of_lane(abi::value_of<design>(), lane);
    if constexpr (is_wide) return swizzled_chunk<pitch>(row, lane % 4 / 2) + lane % 2 * 8;
    if constexpr (is_narrow) return swizzled_chunk<pitch>(row, 0) + lane % 4 * 2;
    // stmatrix: eight first rows, eight second ones
    const unsigned matrix_row = abi::first_row_of_lane(abi::value_of<design>(), lane % 8 * 4) +
                                lane / 8 % 2 * abi::second_row_distance(design);
    return swizzled_chunk<pitch>(matrix_row, lane / 16);
  }

  /// `chunk`: the address of the lane's first one; `sixteen` counts the staging tile's columns
  /// by 16.
  __device__ __forceinline__ static void write(unsigned chunk, unsigned sixteen,
                                               const unsigned (&results)[words]) {
    if constexpr (is_wide) {
      write_rows<0>(chunk ^ 4 * sixteen << 4, results);
      write_rows<0>(chunk ^ (4 * sixteen + 2) << 4, results + 4);
    } else if constexpr (is_narrow) {
      write_rows<0>(chunk ^ sixteen << 4, results);
      write_rows<8>(chunk ^ sixteen << 4, results + 2);
    } else {
      ptx::stmatrix_x4(chunk ^ 2 * sixteen << 4, results);
    }
  }

  /// Adds the accumulators of a staging tile to the reductions of their blocks.
  template <class Register, class Block>
  __device__ __forceinline__ static void reduce(const Register (&sums)[staging_registers],
                                                int staging, Block& block) {
    constexpr int sixteens = columns / 16;
    block.begin_blocks();
#pragma unroll
    for (int sixteen = 0; sixteen < sixteens; ++sixteen) {
      Compute values[2][2][2];
#pragma unroll
      for (int pair = 0; pair < 4; ++pair)
        read_pair(values[pair / 2][pair % 2], sums, 4 * sixteen + pair);
      block.reduce(values, 2 * (staging * sixteens + sixteen));
    }
    block.end_blocks();
  }

  /// Computes two adjacent results of a row and of the row 8 below, for 8 columns and for the next
  /// 8. `sixteen` counts the staging tile's columns by 16; `sixteens_before` precede the staging
  /// tile.
  template <class Register, class Block>
  __device__ __forceinline__ static void finish_sixteen(unsigned (&results)[words],
                                                        const Register (&sums)[staging_registers],
                                                        int sixteen, int sixteens_before,
                                                        Block& block) {
    if constexpr (design.accumulator == DType::int32 && design.out == DType::int32) {
      if (block.passes_accumulators()) return pass_sixteen(results, sums, sixteen);
    }
#pragma unroll
    for (int eight = 0; eight < 2; ++eight) {
      Compute values[2][2];
      const int first = 4 * sixteen + 2 * eight;  // pair of accumulators
      const int eights = 2 * (sixteens_before + sixteen) + eight;
      if constexpr (requires { block.finish_sums(values, &sums[0], eights); }) {
        block.finish_sums(values, &sums[2 * first], eights);
      } else {
        read_pair(values[0], sums, first);
        read_pair(values[1], sums, first + 1);
        block.finish(values, eights);
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) put(results, 2 * eight + half, values[half]);
    }
  }

 private:
  static constexpr unsigned pitch = abi::staging_pitch_bytes(design);
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;

  /// Writes two adjacent results of a row and of the row 8 below, `offset` bytes after `chunk`.
  /// Rows 8 apart have the same swizzle; an odd row has another swizzle than the even one before it
  /// if the swizzle has the period of 8 rows of 128 bytes.
  template <unsigned offset>
  __device__ __forceinline__ static void write_rows(unsigned chunk, const unsigned* results) {
    constexpr unsigned distance = abi::second_row_distance(design);
    write_pair<offset>(chunk, results);
    if constexpr (distance == 1)
      write_pair<offset>(chunk ^ (pitch + (pitch == 128 ? 16 : 0)), results + words / 4);
    else
      write_pair<offset + distance * pitch>(chunk, results + words / 4);
  }
  template <unsigned offset>
  __device__ __forceinline__ static void write_pair(unsigned at, const unsigned* results) {
    if constexpr (is_wide)
      ptx::st_shared_v2<offset>(at, results[0], results[1]);
    else
      ptx::st_shared<2, offset>(at, {{results[0]}});
  }

  /// Passes int32 accumulators on unchanged: converting to and from float64 would use a unit that
  /// converts 16 per clock.
  template <class Register>
  __device__ __forceinline__ static void pass_sixteen(unsigned (&results)[words],
                                                      const Register (&sums)[staging_registers],
                                                      int sixteen) {
#pragma unroll
    for (int word = 0; word < words; ++word)
      results[word] = static_cast<unsigned>(sums[words * sixteen + word]);
  }

  __device__ __forceinline__ static void put(unsigned (&results)[words], int pair,
                                             const Compute (&values)[2]) {
    if constexpr (is_wide) {
      results[2 * pair] = encode<design.out>(values[0]);
      results[2 * pair + 1] = encode<design.out>(values[1]);
    } else if constexpr (is_narrow) {
      results[pair] = encode_pair_of_bytes<design.out>(values);
    } else {
      results[pair] = pack(values);
    }
  }

  template <class Register>
  __device__ __forceinline__ static void read_pair(Compute (&values)[2],
                                                   const Register (&sums)[staging_registers],
                                                   int pair) {
    if constexpr (design.accumulator == DType::float16) {
      values[0] = ptx::cvt_f32_f16(static_cast<unsigned short>(sums[pair]));
      values[1] = ptx::cvt_f32_f16(static_cast<unsigned short>(sums[pair] >> 16));
    } else if constexpr (design.accumulator == DType::int32) {
      values[0] = ptx::widen_s32(sums[2 * pair]);
      values[1] = ptx::widen_s32(sums[2 * pair + 1]);
    } else {
      values[0] = sums[2 * pair];
      values[1] = sums[2 * pair + 1];
    }
  }

  __device__ static unsigned pack(const float (&values)[2]) {
    if constexpr (design.out == DType::bfloat16) {
      return ptx::cvt_rn_bf16x2_f32(values[1], values[0]);
    } else {
      return ptx::cvt_rn_f16x2_f32(values[1], values[0]);
    }
  }
};

}  // namespace gemmery::device
