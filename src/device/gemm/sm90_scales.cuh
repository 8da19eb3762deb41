// SPDX-License-Identifier: Apache-2.0
// Scales of blocks along k in an sm90 kernel. Promoted accumulators take them where the products of
// a part of k are added: sums += (scale of the row * scale of the column) * products. Codes have
// zero points, which are subtracted as they are decoded (copy/decoded_operand.cuh), and where it is
// exact, scales multiply them there.
//
//   scales in global memory, of any type, strided or swizzled
//     | Sm90ScaleLoad: three warps of the producer's warpgroup, each for every third part of k,
//     | decode them; a scale that a tile's rows or columns share multiplies those of the others
//   scales[stage] in shared memory, float32: for each part a vector of rows, one of columns, or
//   both
//     | the stage's full barrier counts these warps
//   Sm90ScaledSums: one FMA for each product, and a multiplication before it if there are both
//   accumulators in registers
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/epilogue/output_place.cuh>
#include <device/gemm/sm90_shared.cuh>
#include <device/mma/wgmma.cuh>
#include <device/ptx/convert.cuh>
#include <device/ptx/shared_memory.cuh>
#include <device/tile/companion.cuh>

namespace gemmery::device {

template <const abi::Sm90Design& design>
struct StageScalesShared {
  alignas(16) float of[design.stages][abi::scale_parts(design)][abi::part_values(design)];
};

template <const abi::Sm90Design& design>
__device__ __forceinline__ const abi::Sm90Scales& with_scales(const abi::Sm90Params& params) {
  if constexpr (design.has_groups)
    return reinterpret_cast<const abi::Sm90ScaledGroupParams&>(params).scales;
  else
    return reinterpret_cast<const abi::Sm90ScaledParams&>(params).scales;
}

/// The loads of one warp.
template <const abi::Sm90Design& design>
class Sm90ScaleLoad {
 public:
  using Shared = Sm90Shared<design>;
  using Ring = Sm90Ring<design>;

  /// Warps 1 to 3 of the producer's warpgroup construct it.
  __device__ __forceinline__ Sm90ScaleLoad(const abi::Sm90Params& params, Shared& shared,
                                           const Ring& ring)
      : params_(params), shared_(shared), ring_(ring), turn_(threadIdx.x / 32 - 1) {}

  /// Loads the scales of this warp's parts of a tile's k, ahead of the consumers.
  template <class KRange>
  __device__ __forceinline__ void load_tile(const OutputPlace& place, const KRange& range,
                                            unsigned k_blocks) {
    const unsigned end = min(range.end, with_scales<design>(params_).k);
    unsigned k = range.first;
#pragma unroll 1
    for (unsigned k_block = 0; k_block < k_blocks; ++k_block) {
#pragma unroll 1
      for (unsigned part = 0; part < abi::scale_parts(design); ++part, k += design.scaled_k) {
        if (turn_ == 0) load_part(place, part, k, end);
        turn_ = turn_ == 0 ? abi::scale_warps - 1 : turn_ - 1;
      }
      cursor_.advance();
    }
  }

 private:
  static constexpr int rows = abi::row_scales(design);
  static constexpr int columns = abi::column_scales(design);
  static constexpr int row_passes = (rows + 31) / 32;
  static constexpr int column_passes = (columns + 31) / 32;
  static constexpr int zeros = abi::row_zeros(design);
  static constexpr int zero_passes = (zeros + 31) / 32;

  /// The scales of a part are in registers when its stage becomes free.
  __device__ __forceinline__ void load_part(const OutputPlace& place, unsigned part, unsigned k,
                                            unsigned end) {
    float of_rows[row_passes + 1] = {};
    float of_columns[column_passes + 1] = {};
    unsigned of_zeros[zero_passes + 1] = {};
    float shared = 0;
    if (k < end) {  // otherwise there are none, and all products are 0
      shared = shared_scale(place, k);
#pragma unroll
      for (int pass = 0; pass < row_passes; ++pass)
        of_rows[pass] = row_scale(place, pass * 32U + lane(), k);
#pragma unroll
      for (int pass = 0; pass < column_passes; ++pass)
        of_columns[pass] = column_scale(place, pass * 32U + lane(), k);
#pragma unroll
      for (int pass = 0; pass < zero_passes; ++pass)
        of_zeros[pass] = minus_zero(place, pass * 32U + lane(), k);
    }
    ring_.wait_for_release(cursor_);
    const unsigned target = ptx::cvta_shared(&shared_.scales.of[cursor_.stage][part]);
    store<rows>(target, of_rows, shared);
    store<columns>(target + rows * 4U, of_columns, shared);
    store_words<zeros>(target + (rows + columns) * 4U, of_zeros);
    __syncwarp();  // waits for the stores of all lanes
    if (lane() == 0) ring_.publish(cursor_);
  }

  /// The scale that multiplies all others of the part: that of a tile's columns (rows), if they
  /// have one in common.
  __device__ __forceinline__ float shared_scale(const OutputPlace& place, unsigned k) const {
    if constexpr (rows == 0) return row_scale(place, 0, k);
    if constexpr (columns == 0) return column_scale(place, 0, k);
    return 1;
  }
  /// The row of an operand; rows beyond out have the values of its last one.
  __device__ __forceinline__ unsigned row_of(const OutputPlace& place, unsigned row) const {
    return min(place.row + row, row_end<design>(params_, place) - 1);
  }
  __device__ __forceinline__ float row_scale(const OutputPlace& place, unsigned row,
                                             unsigned k) const {
    return scale_of<design.a_scales>(with_scales<design>(params_).rows, place.batch,
                                     row_of(place, row), k);
  }
  /// The negative zero point, in both halves.
  __device__ __forceinline__ unsigned minus_zero(const OutputPlace& place, unsigned row,
                                                 unsigned k) const {
    constexpr abi::DType type = design.a_scales.zero_point;
    const float zero = decode_companion<type>(load_companion<type, false>(
        with_scales<design>(params_).row_zeros, place.batch, row_of(place, row), k));
    return pair_of(-zero);
  }
  /// A number in both halves, as codes are decoded.
  __device__ __forceinline__ static unsigned pair_of(float value) {
    return design.b == abi::DType::float16 ? ptx::cvt_rn_f16x2_f32(value, value)
                                           : ptx::cvt_rn_bf16x2_f32(value, value);
  }
  __device__ __forceinline__ float column_scale(const OutputPlace& place, unsigned column,
                                                unsigned k) const {
    return scale_of<design.b_scales>(
        with_scales<design>(params_).columns, place.batch,
        min(place.column + column, column_end<design>(params_, place) - 1), k);
  }

  /// The product of an operand's scales. Rows and columns beyond out have those of the last one.
  template <abi::CompanionTypes types>
  __device__ __forceinline__ static float scale_of(const abi::CompanionParams (&scales)[2],
                                                   unsigned batch, unsigned row, unsigned k) {
    if constexpr (types.scale_count == 0) return 1;
    float scale = decode_companion<types.scales[0]>(
        load_companion<types.scales[0], types.are_swizzled[0]>(scales[0], batch, row, k));
    if constexpr (types.scale_count > 1)
      scale *= decode_companion<types.scales[1]>(
          load_companion<types.scales[1], types.are_swizzled[1]>(scales[1], batch, row, k));
    return scale;
  }

  template <int count, int passes>
  __device__ __forceinline__ static void store(unsigned target, const float (&scales)[passes],
                                               float shared) {
    unsigned words[passes];
#pragma unroll
    for (int pass = 0; pass < passes; ++pass)
      words[pass] = abi::scales_codes(design) ? pair_of(scales[pass])
                                              : __float_as_uint(scales[pass] * shared);
    store_words<count>(target, words);
  }
  template <int count, int passes>
  __device__ __forceinline__ static void store_words(unsigned target,
                                                     const unsigned (&words)[passes]) {
#pragma unroll
    for (int pass = 0; pass < (count + 31) / 32; ++pass) {
      const unsigned index = pass * 32U + lane();
      if ((pass + 1) * 32 <= count || static_cast<int>(index) < count)
        ptx::st_shared<4>(target + index * 4, {{words[pass]}});
    }
  }

  __device__ static unsigned lane() { return threadIdx.x % 32; }

  const abi::Sm90Params& params_;
  Shared& shared_;
  const Ring ring_;
  typename Ring::Cursor cursor_;
  unsigned turn_;  // parts until this warp's next one
};

/// Adds products to a thread's accumulators.
template <const abi::Sm90Design& design>
class Sm90ScaledSums {
 public:
  using Sums = ConsumerSums<design>;

  /// The consumer's first row and column of the tile.
  __device__ __forceinline__ Sm90ScaledSums(Sm90Shared<design>& shared, unsigned row,
                                            unsigned column)
      : rows_(ptx::cvta_shared(&shared.scales) + (row + first_row()) * bytes),
        columns_(ptx::cvta_shared(&shared.scales) +
                 (abi::row_scales(design) + column + threadIdx.x % 4 * 2) * bytes) {}

  __device__ __forceinline__ static void clear(Sums& sums) {
#pragma unroll
    for (int block = 0; block < Sums::blocks; ++block) {
#pragma unroll
      for (int index = 0; index < Sums::per_block; ++index) sums.block[block][index] = 0;
    }
  }

  /// Adds the products of a part, whose wgmmas must have been waited for.
  __device__ __forceinline__ void add(Sums& sums, unsigned stage, unsigned part) const {
    const unsigned at = (stage * abi::scale_parts(design) + part) * part_bytes;
    float of_rows[Sums::blocks][2];
    read_rows(of_rows, at);
#pragma unroll
    for (int eight = 0; eight < Sums::per_block / 4; eight += 2) {
      float of_columns[2][2];
      read_columns(of_columns, at, eight);
#pragma unroll
      for (int block = 0; block < Sums::blocks; ++block) {
        float products[8];
        WgmmaSums<design>::read(products, block, eight / 2);
#pragma unroll
        for (int index = 0; index < 8; ++index) {
          // Of four, the first two are adjacent columns, the others those of the second row.
          const float scale =
              product(of_rows[block][index / 2 % 2], of_columns[index / 4][index % 2]);
          float& sum = sums.block[block][eight * 4 + index];
          sum = __fmaf_rn(scale, products[index], sum);
        }
      }
    }
  }

 private:
  static constexpr unsigned bytes = sizeof(float);
  static constexpr bool has_rows = abi::row_scales(design) > 0;
  static constexpr bool has_columns = abi::column_scales(design) > 0;
  static constexpr unsigned part_bytes = abi::part_values(design) * bytes;

  __device__ static unsigned first_row() {
    const unsigned thread = threadIdx.x % abi::warpgroup_threads;
    return thread / 32 * abi::sm90_warp_rows +
           abi::first_row_of_lane(abi::value_of<design>(), thread % 32);
  }

  __device__ __forceinline__ void read_rows(float (&values)[Sums::blocks][2], unsigned at) const {
    if constexpr (has_rows) {
#pragma unroll
      for (int block = 0; block < Sums::blocks; ++block) {
#pragma unroll
        for (unsigned second = 0; second < 2; ++second) {
          const unsigned row =
              block * abi::sm90_block_rows + second * abi::second_row_distance(design);
          values[block][second] = __uint_as_float(ptx::ld_shared<4>(rows_ + at + row * bytes));
        }
      }
    }
  }

  /// Those of two times eight columns.
  __device__ __forceinline__ void read_columns(float (&values)[2][2], unsigned at,
                                               int eight) const {
    if constexpr (has_columns) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const auto pair = ptx::ld_shared_registers<8>(columns_ + at + (eight + half) * 8 * bytes);
        values[half][0] = __uint_as_float(pair.words[0]);
        values[half][1] = __uint_as_float(pair.words[1]);
      }
    }
  }

  __device__ __forceinline__ static float product(float of_row, float of_column) {
    if constexpr (!has_columns) return of_row;
    if constexpr (!has_rows) return of_column;
    return of_row * of_column;
  }

  unsigned rows_;  // addresses in the first part of the first stage
  unsigned columns_;
};

}  // namespace gemmery::device
