// SPDX-License-Identifier: Apache-2.0
// The default epilogue and programs for a tile whose rows (or columns) are scattered to out by
// indices. C, inputs and results are indexed like out. Rows with index -1 are neither read nor
// stored.
#pragma once

#include <device/abi/groups.hpp>
#include <device/abi/simt_design.hpp>
#include <device/abi/simt_params.hpp>
#include <device/epilogue/linear_combination.cuh>
#include <device/epilogue/program.cuh>
#include <device/epilogue/reduction.cuh>
#include <device/tile/element.cuh>
#include <device/tile/indexed_element.cuh>
#include <device/tile/spread.cuh>

namespace gemmery::device {

/// The elements of out for a thread's accumulators.
template <const abi::SimtDesign& design>
class IndexedTargets {
 public:
  /// `row` and `column` of all groups: those of the thread's first accumulator.
  __device__ IndexedTargets(const abi::SimtParams& params, const abi::IndexParams* scatter,
                            unsigned row, unsigned column)
      : params_(params), scatter_(scatter), row_(row), column_(column) {}

  /// The same with a table of the rows of out for the tile's rows from `in_tile` on.
  __device__ IndexedTargets(const abi::SimtParams& params, const int* rows_of_out, int in_tile,
                            unsigned row, unsigned column)
      : params_(params),
        scatter_(nullptr),
        rows_of_out_(rows_of_out + in_tile),
        row_(row),
        column_(column) {}

  /// The row and column of out; no_element if there is none.
  __device__ int row(int thread_row) const {
    const unsigned own = row_ + static_cast<unsigned>(row_spread(design).offset(thread_row));
    if (own >= params_.m) return no_element;
    if constexpr (design.has_phases) return rows_of_out_[own - row_];
    if constexpr (design.indexed == abi::IndexedExtent::rows) return find_element(*scatter_, own);
    return static_cast<int>(own);
  }
  __device__ int column(int thread_column) const {
    const unsigned own =
        column_ + static_cast<unsigned>(column_spread(design).offset(thread_column));
    if (own >= params_.n) return no_element;
    if constexpr (design.indexed == abi::IndexedExtent::columns)
      return find_element(*scatter_, own);
    return static_cast<int>(own);
  }

 private:
  const abi::SimtParams& params_;
  const abi::IndexParams* const scatter_;
  const int* const rows_of_out_ = nullptr;  // in shared memory
  const unsigned row_;
  const unsigned column_;
};

/// Scales, rounds and stores a thread's accumulators.
template <const abi::SimtDesign& design, class Number>
__device__ __forceinline__ void store_indexed_combination(
    const abi::SimtParams& params, const IndexedTargets<design>& targets,
    const Number (&sums)[design.thread_m][design.thread_n], unsigned batch) {
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;
  using Run = OutputRun<design>;
  const Compute alpha = static_cast<Compute>(params.alpha);
  const Compute beta = static_cast<Compute>(params.beta);
  const bool reads_c = design.has_c && params.beta != 0.0;
#pragma unroll
  for (int thread_row = 0; thread_row < design.thread_m; thread_row += Run::rows) {
    const int row = targets.row(thread_row);
#pragma unroll
    for (int thread_column = 0; thread_column < design.thread_n; thread_column += Run::columns) {
      const int column = targets.column(thread_column);
      if (row == no_element || column == no_element) continue;
      Compute values[Run::length];
#pragma unroll
      for (int position = 0; position < Run::length; ++position)
        values[position] =
            alpha * static_cast<Compute>(sums[thread_row + (Run::is_along_row ? 0 : position)]
                                             [thread_column + (Run::is_along_row ? position : 0)]);
      const auto out_row = static_cast<unsigned>(row);
      const auto out_column = static_cast<unsigned>(column);
      if constexpr (design.has_c) {
        const MatrixCorner<design.c, design.c_contiguity> c(params.c, batch, out_row, out_column);
        if (reads_c) add_c<design>(values, beta, c, 0, 0);
      }
      ptx::Registers<Run::length * abi::bytes_of(design.out)> stored{};
#pragma unroll
      for (int position = 0; position < Run::length; ++position)
        place<design.out>(stored, position, values[position]);
      const MatrixCorner<design.out, design.out_contiguity> out(params.out, batch, out_row,
                                                                out_column);
      ptx::st_global(out.first, stored);
    }
  }
}

/// Takes no values, for programs without reductions.
struct NoReductions {
  template <class Results>
  __device__ static void take(const Results&, int, int, int) {}
};

/// Runs a program on a thread's accumulators, a row of out at a time, and stores its results.
/// `reductions` takes the values that are reduced: NoReductions or a ThreadTileProgram.
template <const abi::SimtDesign& design, class Epilogue, class EpilogueParams, class Number,
          class Reductions>
__device__ __forceinline__ void store_indexed_program(
    const abi::SimtParams& params, const EpilogueParams& epilogue,
    const IndexedTargets<design>& targets, const Number (&sums)[design.thread_m][design.thread_n],
    unsigned batch, Reductions&& reductions) {
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;
  using Run = OutputRun<design>;
  constexpr bool is_of_rows = design.indexed == abi::IndexedExtent::rows || design.has_phases;
  constexpr int columns = is_of_rows ? column_spread(design).chunk : 1;
  constexpr int length = is_of_rows && Run::is_along_row ? Run::length : 1;
  const ProgramBatch<Epilogue> origin(epilogue, batch);
#pragma unroll
  for (int thread_row = 0; thread_row < design.thread_m; ++thread_row) {
    const int row = targets.row(thread_row);
#pragma unroll
    for (int thread_column = 0; thread_column < design.thread_n; thread_column += columns) {
      const int column = targets.column(thread_column);
      if (row == no_element || column == no_element) continue;
      const auto out_row = static_cast<unsigned>(row);
      const auto out_column = static_cast<unsigned>(column);
      const ProgramRows<Epilogue, Compute, 1, 1> program(epilogue, origin, out_row, out_column,
                                                         out_row + 1,
                                                         is_of_rows ? params.n : out_column + 1);
      LoadedPatch<Epilogue, 1, columns> loaded;
      program.load(loaded, 0);
      Compute values[1][columns];
#pragma unroll
      for (int at = 0; at < columns; ++at)
        values[0][at] = static_cast<Compute>(sums[thread_row][thread_column + at]);
      Compute results[Epilogue::outputs + 1][1][columns];
      program.apply(loaded, values, 0, results);
      reductions.take(results, program.columns_left(0), thread_row, thread_column);
      const MatrixCorner<design.out, design.out_contiguity> out(params.out, batch, out_row,
                                                                out_column);
#pragma unroll
      for (int first = 0; first < columns; first += length) {
        if (program.columns_left(first) <= 0) continue;
        ptx::Registers<length * abi::bytes_of(design.out)> stored{};
#pragma unroll
        for (int at = 0; at < length; ++at)
          place<design.out>(stored, at, results[0][0][first + at]);
        ptx::st_global(out.at(0, first), stored);
      }
    }
  }
}

}  // namespace gemmery::device
