// SPDX-License-Identifier: Apache-2.0
// Reductions of blocks of one row, if a row of a tile is held in runs of adjacent columns by
// adjacent lanes of a warp: a thread combines its run, then shuffles combine the runs of a block.
#pragma once

#include <device/epilogue/program.cuh>
#include <device/epilogue/reduction.cuh>

namespace gemmery::device {

/// The blocks of one run of `run` columns, which begins at a multiple of `run` in the tile.
template <class Epilogue, class Compute, int run>
class RowBlocks {
 public:
  __device__ __forceinline__ RowBlocks() { clear(); }

  template <int block = 0>
  __device__ __forceinline__ void add(const Compute (&values)[Epilogue::blocks],
                                      const BlockElement& at) {
    if constexpr (block < Epilogue::blocks) {
      using Reducer = ReducerOfBlock<block>;
      Compute& value = values_[block][at.column_of_run / width<block>()];
      value = Reducer::both(value, Reducer::of(values[block]));
      add<block + 1>(values, at);
    }
  }

  /// Called by all lanes of the warp.
  template <int block = 0>
  __device__ __forceinline__ void finish() {
    if constexpr (block < Epilogue::blocks) {
      constexpr int columns = static_cast<int>(Epilogue::block[block].columns);
      static_assert(Epilogue::block[block].rows == 1 && (columns % run == 0 || run % columns == 0),
                    "blocks of one row, of whole runs or in one run");
      if constexpr (columns > run)
        values_[block][0] =
            ReducerOfBlock<block>::across_lanes(values_[block][0], 1, columns / run);
      finish<block + 1>();
    }
  }

  template <int block = 0>
  __device__ __forceinline__ void read(Compute (&values)[Epilogue::blocks],
                                       const BlockElement& at) const {
    if constexpr (block < Epilogue::blocks) {
      values[block] = values_[block][at.column_of_run / width<block>()];
      read<block + 1>(values, at);
    }
  }

 private:
  template <int block>
  using ReducerOfBlock = Reducer<Epilogue::block[block].reduction, Compute>;

  /// The columns of a run that are of one block.
  template <int block>
  GEMMERY_HOST_DEVICE
  static constexpr int width() {
    constexpr int columns = static_cast<int>(Epilogue::block[block].columns);
    return columns < run ? columns : run;
  }

  template <int block = 0>
  __device__ __forceinline__ void clear() {
    if constexpr (block < Epilogue::blocks) {
#pragma unroll
      for (int at = 0; at < run; ++at) values_[block][at] = ReducerOfBlock<block>::nothing();
      clear<block + 1>();
    }
  }

  Compute values_[Epilogue::blocks][run];
};

}  // namespace gemmery::device
