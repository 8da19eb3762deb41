// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels without a matrix product: D = program(operands), element by element, at the
// speed of memory. It is the epilogue of a GEMM of K = 0, whose accumulators are 0.
//
//   the program's operands in global memory
//     | epilogue/program: each thread reads all its patches, by 16 bytes where possible
//   registers
//     | the emitted program, patch by patch; it stores further results
//   out in global memory
#pragma once

#include <device/abi/elementwise.hpp>
#include <device/epilogue/operations.cuh>
#include <device/epilogue/program.cuh>
#include <device/tile/batch.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

template <const abi::ElementwiseDesign& design, class Epilogue>
class Elementwise {
 public:
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;
  using Params = EpilogueParamsOf<Epilogue, Compute>;

  __device__ __forceinline__ Elementwise(const abi::ElementwiseParams& params,
                                         const Params& epilogue)
      : params_(params), epilogue_(epilogue) {}

  __device__ __forceinline__ void compute_tile(unsigned batch, unsigned tile_row,
                                               unsigned tile_column) {
    const unsigned log2 = params_.log2_row_threads;
    const unsigned thread_column = threadIdx.x & ((1U << log2) - 1U);
    const unsigned row = tile_row * abi::elementwise_tile_rows(log2) + (threadIdx.x >> log2);
    const unsigned column =
        tile_column * abi::elementwise_tile_columns(abi::value_of<design>(), log2) +
        thread_column * design.columns;
    if (row < params_.m && column < params_.n) compute(batch, row, column);
  }

 private:
  /// All loads precede the first store, so that they are in flight together. An operand may be out
  /// itself: each thread then reads exactly the elements that it stores.
  __device__ __forceinline__ void compute(unsigned batch, unsigned row, unsigned column) {
    const ProgramRows<Epilogue, Compute, 1, 1> program(
        epilogue_, ProgramBatch<Epilogue>(epilogue_, batch), row, column, params_.m, params_.n);
    constexpr int bytes = abi::bytes_of(design.out);
    char* const out = matrix_of_batch<bytes>(params_.out.data, params_.out.batch_stride, batch);
    const int step = design.columns << params_.log2_row_threads;
    LoadedPatch<Epilogue, 1, design.columns> loaded[design.patches];
#pragma unroll
    for (int patch = 0; patch < design.patches; ++patch) program.load(loaded[patch], patch * step);
#pragma unroll
    for (int patch = 0; patch < design.patches; ++patch) {
      const Compute nothing[1][design.columns]{};
      Compute results[Epilogue::outputs + 1][1][design.columns];
      program.apply(loaded[patch], nothing, patch * step, results);
      store(out, results[0][0], row, column, patch * step, program.columns_left(patch * step));
    }
  }

  __device__ __forceinline__ void store(char* out, const Compute (&values)[design.columns],
                                        unsigned row, unsigned column, int offset, int left) const {
    constexpr int bytes = abi::bytes_of(design.out);
    const abi::Int64 step = design.out_vector_bytes > 0 ? 1 : params_.out.column_stride;
    const abi::Int64 element = static_cast<abi::Int64>(row) * params_.out.row_stride +
                               (static_cast<abi::Int64>(column) + offset) * step;
    store_run<design.out, design.out_vector_bytes, design.columns>(out + element * bytes, values,
                                                                   left, step * bytes);
  }

  const abi::ElementwiseParams& params_;
  const Params& epilogue_;
};

/// The kernel: abi::elementwise_threads threads, any grid of blocks along x for the tiles of a
/// matrix and along y for the batch.
template <const abi::ElementwiseDesign& design, class Epilogue, class EpilogueParams>
__device__ inline void elementwise(
    const abi::ProgramParams<abi::ElementwiseParams, EpilogueParams>& params) {
  const abi::ElementwiseParams& of = params.gemm;
  Elementwise<design, Epilogue> work(of, params.epilogue);
  const unsigned tiles = of.tile_rows * of.columns.divisor;
  for (unsigned batch = blockIdx.y; batch < of.batches; batch += gridDim.y) {
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      const unsigned row = of.columns.divide(tile);
      work.compute_tile(batch, row, tile - row * of.columns.divisor);
    }
  }
}

}  // namespace gemmery::device
