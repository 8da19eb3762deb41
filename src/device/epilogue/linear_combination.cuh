// SPDX-License-Identifier: Apache-2.0
// The default epilogue, out = alpha * accumulator + beta * c, over the elements that one thread
// accumulated.
#pragma once

#include <device/abi/simt_design.hpp>
#include <device/abi/simt_params.hpp>
#include <device/ptx/memory.cuh>
#include <device/tile/batch.cuh>
#include <device/tile/element.cuh>
#include <device/tile/spread.cuh>

namespace gemmery::device {

/// A matrix as one thread sees it: the address of its first element, and the strides to the others.
template <DType dtype, abi::Contiguity contiguity>
struct MatrixCorner {
  char* first;
  abi::Int64 row_stride;
  abi::Int64 column_stride;

  __device__ MatrixCorner(const abi::SimtMatrix& matrix, unsigned batch, unsigned row,
                          unsigned column)
      : row_stride(contiguity == abi::Contiguity::column_major ? 1 : matrix.row_stride),
        column_stride(contiguity == abi::Contiguity::row_major ? 1 : matrix.column_stride) {
    constexpr int bytes = abi::bytes_of(dtype);
    first = matrix_of_batch<bytes>(matrix.data, matrix.batch_stride, batch) +
            (row * row_stride + column * column_stride) * bytes;
  }

  __device__ char* at(int row, int column) const {
    return first + (row * row_stride + column * column_stride) * abi::bytes_of(dtype);
  }
};

/// The elements of out that a thread writes with one access: adjacent in memory, within one chunk.
/// The matrix holds them all or none, because a design's vectors divide its extent.
template <const abi::SimtDesign& design>
struct OutputRun {
  static constexpr bool is_along_row = design.out_contiguity != abi::Contiguity::column_major;
  static constexpr int chunk =
      is_along_row ? column_spread(design).chunk : row_spread(design).chunk;
  static constexpr int vector = design.out_vector_bytes / abi::bytes_of(design.out);
  static constexpr int length = vector < chunk ? vector : chunk;
  static constexpr int rows = is_along_row ? 1 : length;
  static constexpr int columns = is_along_row ? length : 1;
  // C is read in the same runs; in one access if its elements are adjacent in the same direction.
  static constexpr int c_vector = design.c_contiguity == design.out_contiguity
                                      ? design.c_vector_bytes / abi::bytes_of(design.c)
                                      : 1;
  static constexpr int c_length = c_vector < length ? c_vector : length;
};

/// values += beta * c, for one run whose first element is at (row, column) from the corner.
template <const abi::SimtDesign& design, class Compute>
__device__ __forceinline__ void add_c(Compute (&values)[OutputRun<design>::length], Compute beta,
                                      const MatrixCorner<design.c, design.c_contiguity>& c, int row,
                                      int column) {
  using Run = OutputRun<design>;
#pragma unroll
  for (int start = 0; start < Run::length; start += Run::c_length) {
    const char* source =
        c.at(row + (Run::is_along_row ? 0 : start), column + (Run::is_along_row ? start : 0));
    const auto loaded = ptx::ld_global<Run::c_length * abi::bytes_of(design.c)>(source);
#pragma unroll
    for (int position = 0; position < Run::c_length; ++position) {
      values[start + position] += beta * decode<design.c, Compute>(loaded, position);
    }
  }
}

/// Scales, rounds and stores a thread's accumulators; the first belongs to out[batch][row][column].
template <const abi::SimtDesign& design, class Number>
__device__ __forceinline__ void store_linear_combination(
    const abi::SimtParams& params, const Number (&sums)[design.thread_m][design.thread_n],
    unsigned batch, unsigned row, unsigned column) {
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;
  using Run = OutputRun<design>;
  constexpr Spread rows = row_spread(design);
  constexpr Spread columns = column_spread(design);
  if (row >= params.m || column >= params.n) return;
  const unsigned rows_left = params.m - row;
  const unsigned columns_left = params.n - column;
  const Compute alpha = static_cast<Compute>(params.alpha);
  const Compute beta = static_cast<Compute>(params.beta);
  const bool reads_c = design.has_c && params.beta != 0.0;
  const MatrixCorner<design.out, design.out_contiguity> out(params.out, batch, row, column);
  const MatrixCorner<design.c, design.c_contiguity> c(params.c, batch, row, column);
#pragma unroll
  for (int thread_row = 0; thread_row < design.thread_m; thread_row += Run::rows) {
    const int tile_row = rows.offset(thread_row);
#pragma unroll
    for (int thread_column = 0; thread_column < design.thread_n; thread_column += Run::columns) {
      const int tile_column = columns.offset(thread_column);
      if (tile_row >= rows_left || tile_column >= columns_left) continue;
      Compute values[Run::length];
#pragma unroll
      for (int position = 0; position < Run::length; ++position) {
        values[position] =
            alpha * static_cast<Compute>(sums[thread_row + (Run::is_along_row ? 0 : position)]
                                             [thread_column + (Run::is_along_row ? position : 0)]);
      }
      if constexpr (design.has_c) {
        if (reads_c) add_c<design>(values, beta, c, tile_row, tile_column);
      }
      ptx::Registers<Run::length * abi::bytes_of(design.out)> stored{};
#pragma unroll
      for (int position = 0; position < Run::length; ++position)
        place<design.out>(stored, position, values[position]);
      ptx::st_global(out.at(tile_row, tile_column), stored);
    }
  }
}

}  // namespace gemmery::device
