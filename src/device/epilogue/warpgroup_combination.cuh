// SPDX-License-Identifier: Apache-2.0
// The default epilogue of a warpgroup: D = alpha * accumulator + beta * c.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/epilogue/listed_problem.cuh>
#include <device/epilogue/output_place.cuh>
#include <device/epilogue/scattered_rows.cuh>
#include <device/ptx/fence.cuh>
#include <device/ptx/memory.cuh>
#include <device/ptx/results.cuh>
#include <device/ptx/scaled_sums.cuh>
#include <device/tile/batch.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// alpha, of the problem of a list or of all, in the compute type of the epilogue.
template <const abi::Sm90Design& design, class Compute>
__device__ __forceinline__ decltype(auto) alpha_of(const abi::Sm90Params& params, unsigned batch) {
  if constexpr (design.has_list)
    return static_cast<Compute>(with_list<design>(params).list.problems.alpha[batch]);
  else if constexpr (sizeof(Compute) == sizeof(double))
    return static_cast<const Compute&>(params.wide_alpha);
  else
    return static_cast<const Compute&>(params.alpha);
}
template <const abi::Sm90Design& design, class Compute>
__device__ __forceinline__ decltype(auto) beta_of(const abi::Sm90Params& params, unsigned batch) {
  if constexpr (design.has_list)
    return static_cast<Compute>(with_list<design>(params).list.beta[batch]);
  else if constexpr (sizeof(Compute) == sizeof(double))
    return static_cast<const Compute&>(params.wide_beta);
  else
    return static_cast<const Compute&>(params.beta);
}

/// Adds beta * c to a thread's accumulators in a block of 64 rows: reads two adjacent columns at a
/// time, or one if C has any strides, and nothing beyond the matrix. Without a C it is empty.
template <const abi::Sm90Design& design, bool has_c = design.has_c>
class AddendReader {
 public:
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;

  __device__ __forceinline__ AddendReader(const abi::Sm90Params& params, const OutputPlace& place,
                                          unsigned thread)
      : params_(params), batch_(place.batch) {
    decltype(auto) c = c_of();
    const unsigned row = place.row + thread / 32 * abi::sm90_warp_rows +
                         abi::first_row_of_lane(abi::value_of<design>(), thread % 32);
    const unsigned column = place.column + thread % 4 * 2;
    const MatrixStart start =
        start_of_batch<design.has_pointers>(c.data, c.batch_stride, place.batch);
    if constexpr (design.has_phases) {
      const abi::DgradPhase& phase = with_phases(params).phases[place.batch];
      const abi::Int64 first = matrix_row<design>(phase, row);
      first_ = start.address + (first * c.row_stride + offset_of(column)) * element_bytes;
      rows_between_ = matrix_row<design>(phase, row + second_row) - first;
    } else if constexpr (design.scatters_rows) {
      const ScatteredRows rows = rows_of_out<second_row>(params, place, row);
      first_ = start.address +
               (start.elements + rows.first * c.row_stride + offset_of(column)) * element_bytes;
      rows_between_ = rows.between;
      has_row_[0] = rows.has_row[0];
      has_row_[1] = rows.has_row[1];
    } else {
      first_ =
          start.address + (start.elements + row * c.row_stride + offset_of(column)) * element_bytes;
    }
    // With beta = 0, C is not read.
    const int columns = beta() == 0 ? 0
                                    : static_cast<int>(column_end<design>(params, place)) -
                                          static_cast<int>(column);
    const auto is_read = [&](unsigned half) {
      if constexpr (design.scatters_rows) return has_row_[half];
      return row + half * second_row < row_end<design>(params, place);
    };
    columns_left_[0] = is_read(0) ? columns : 0;
    columns_left_[1] = is_read(1) ? columns : 0;
    if constexpr (!design.has_any_c) {
#pragma unroll
      for (int half = 0; half < 2; ++half) last_[half] = read_last(half);
    }
    ptx::pin(first_);  // otherwise the compiler recomputes it for every staging tile
  }

  /// values = alpha * values + beta * c for two adjacent columns of a lane's two rows; `eight`
  /// counts columns by 8.
  __device__ __forceinline__ void combine(Compute (&values)[2][2], Compute alpha, int eight) const {
    if constexpr (design.has_any_c) {
#pragma unroll
      for (int half = 0; half < 2; ++half) combine_row(values[half], alpha, eight, half);
    } else {
      ptx::add_scaled<design.c>(values, alpha, beta(), pairs_at(eight));
    }
  }
  /// The same with values from four int32 accumulators.
  __device__ __forceinline__ void combine(Compute (&values)[2][2], const int* sums, Compute alpha,
                                          int eight) const {
    ptx::add_scaled<design.c>(values, sums, alpha, beta(), pairs_at(eight));
  }
  /// The same for columns from `column` on, from registers of wgmma to results of out.
  template <int row, int first, int column>
  __device__ __forceinline__ void state_results(unsigned* results, Compute alpha) const {
    ptx::state_results<row, first, column, element_bytes>(results, alpha, beta(), pairs_at(0));
  }

 private:
  __device__ __forceinline__ ptx::AddendPairs pairs_at(int eight) const {
    const int offset = 8 * eight * element_bytes;
    return {.source = {row_of(0) + offset, row_of(1) + offset},
            .left = {columns_left_[0], columns_left_[1]},
            .bound = 8 * eight + 1,
            .last = {last_[0], last_[1]}};
  }

  /// The same for one row of a C of any strides.
  __device__ __forceinline__ void combine_row(Compute (&values)[2], Compute alpha, int eight,
                                              int half) const {
    const char* const source =
        row_of(half) + offset_of(static_cast<unsigned>(8 * eight)) * element_bytes;
#pragma unroll
    for (int column = 0; column < 2; ++column) {
      const auto element = ptx::ld_global_if_above<element_bytes>(
          columns_left_[half], 8 * eight + column,
          source + offset_of(static_cast<unsigned>(column)) * element_bytes, {});
      values[column] = alpha * values[column] + beta() * decode<design.c, Compute>(element, 0);
    }
  }

  static constexpr int element_bytes = abi::bytes_of(design.c);
  static constexpr unsigned second_row = abi::second_row_distance(design);

  __device__ __forceinline__ decltype(auto) c_of() const {
    return addend_of<design>(params_, batch_);
  }
  __device__ __forceinline__ decltype(auto) beta() const {
    return beta_of<design, Compute>(params_, batch_);
  }

  /// The offset of columns, in elements.
  __device__ __forceinline__ abi::Int64 offset_of(unsigned columns) const {
    return design.has_any_c ? columns * c_of().column_stride : columns;
  }

  __device__ __forceinline__ const char* row_of(int half) const {
    if constexpr (design.has_phases || design.scatters_rows)
      return first_ + half * (rows_between_ * c_of().row_stride * element_bytes);
    return first_ + half * (second_row * c_of().row_stride * element_bytes);
  }

  /// The last element of a row if it is half of one of this thread's pairs. It stands in for all
  /// pairs that are not read; the others lie beyond the matrix, and their results are not stored.
  __device__ __forceinline__ unsigned read_last(int half) const {
    return ptx::ld_global_last<element_bytes, abi::columns_per_consumer(design)>(
        row_of(half), columns_left_[half]);
  }

  const abi::Sm90Params& params_;
  unsigned batch_;    // read of a problem of a list alone
  unsigned last_[2];  // 0 if there is none
  const char* first_;
  bool has_row_[2] = {};                  // if rows are scattered
  abi::Int64 rows_between_ = second_row;  // of the thread's two, in out's matrix
  int columns_left_[2];  // from the thread's first column; 0 for a row beyond the matrix
};

template <const abi::Sm90Design& design>
class AddendReader<design, false> {
 public:
  __device__ AddendReader(const abi::Sm90Params&, const OutputPlace&, unsigned) {}
};

/// The default program, with the interface through which WarpgroupStore gets D's values.
template <const abi::Sm90Design& design>
class WarpgroupLinearCombination {
 public:
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;

  __device__ __forceinline__ WarpgroupLinearCombination(const abi::Sm90Params& params,
                                                        unsigned thread)
      : params_(params), thread_(thread) {}

  /// 64 rows of a tile.
  class Block {
   public:
    static constexpr bool reduces_blocks = false;

    __device__ __forceinline__ Block(const abi::Sm90Params& params, const OutputPlace& place,
                                     unsigned thread)
        : alpha_(alpha_of<design, Compute>(params, place.batch)), addend_(params, place, thread) {}
    /// True if the values of out are the accumulators, unchanged.
    __device__ __forceinline__ bool passes_accumulators() const {
      return !design.has_c && alpha_ == 1;
    }
    __device__ __forceinline__ void finish(Compute (&values)[2][2], int eight) const {
      if constexpr (design.has_c) {
        addend_.combine(values, alpha_, eight);
      } else {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          values[half][0] *= alpha_;
          values[half][1] *= alpha_;
        }
      }
    }
    /// The same from int32 accumulators, in one statement.
    __device__ __forceinline__ void finish_sums(Compute (&values)[2][2], const int* sums,
                                                int eight) const
        requires(design.accumulator == DType::int32 && design.has_c && !design.has_any_c) {
      addend_.combine(values, sums, alpha_, eight);
    }
    /// True if state_results may compute the results.
    static constexpr bool states_results = true;
    /// The results of columns from `column` on, from wgmma's registers from the first-th of the
    /// row-th block on, in one statement.
    template <int row, int first, int column>
    __device__ __forceinline__ void state_results(unsigned* results) const {
      if constexpr (design.has_c)
        addend_.template state_results<row, first, column>(results, alpha_);
      else
        ptx::state_results<row, first>(results, alpha_);
    }
    __device__ static void begin_staging(int) {}
    __device__ static void end_staging(int) {}
    __device__ static void end() {}

   private:
    decltype(alpha_of<design, Compute>(abi::Sm90Params{}, 0)) alpha_;
    const AddendReader<design> addend_;
  };

  /// The epilogue reads nothing before the accumulators are complete: that would cost registers.
  static constexpr bool reads_early = false;
  static constexpr bool adds_vector = false;
  static constexpr bool reduces_whole_tiles = false;
  static constexpr bool prefetches = design.has_c && !design.has_any_c && !design.has_phases &&
                                     !design.scatters_rows && abi::has_room_to_prefetch(design);

  /// Prefetches C during the mainloop; `place` is this consumer's share of the tile.
  __device__ __forceinline__ void begin_share(const OutputPlace& place) const {
    if constexpr (prefetches) {
      constexpr int element_bytes = abi::bytes_of(design.c);
      const unsigned rows = row_end<design>(params_, place);
      const unsigned columns = column_end<design>(params_, place);
      if (beta_of<design, Compute>(params_, place.batch) == 0 || place.row >= rows ||
          place.column >= columns)
        return;
      const MatrixStart start =
          start_of_batch<design.has_pointers>(params_.c.data, params_.c.batch_stride, place.batch);
      const char* const first =
          start.address +
          (start.elements + place.row * params_.c.row_stride + place.column) * element_bytes;
      prefetch_share<abi::blocks_per_consumer(design) * abi::sm90_block_rows,
                     abi::columns_per_consumer(design) * element_bytes>(
          first, params_.c.row_stride * element_bytes, rows - place.row,
          static_cast<abi::Int64>(columns - place.column) * element_bytes, thread_);
    }
  }

  __device__ static constexpr bool begin_tile(const OutputPlace&) { return true; }
  __device__ __forceinline__ Block begin_block(const OutputPlace& place, int) const {
    return Block(params_, place, thread_);
  }
  __device__ static void end_tile() {}
  __device__ static void finish() {}

 private:
  const abi::Sm90Params& params_;
  unsigned thread_;
};

}  // namespace gemmery::device
