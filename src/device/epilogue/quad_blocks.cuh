// SPDX-License-Identifier: Apache-2.0
// Reductions of blocks of one row, if wgmma's accumulators are reduced where they are: of every
// eight columns of a row four adjacent lanes hold two each. A thread combines its columns of a
// block, then shuffles combine the lanes.
#pragma once

#include <device/epilogue/program.cuh>
#include <device/epilogue/reduction.cuh>

namespace gemmery::device {

/// The blocks of a staging tile of `columns` columns, in the two rows of a thread.
template <class Epilogue, class Compute, int columns>
class QuadBlocks {
 public:
  template <int block = 0>
  __device__ __forceinline__ void clear() {
    if constexpr (block < Epilogue::blocks) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
#pragma unroll
        for (int at = 0; at < count<block>(); ++at)
          values_[block][row][at] = ReducerOfBlock<block>::nothing();
      }
      clear<block + 1>();
    }
  }

  /// The eight columns of the staging tile whose elements are added or read next.
  __device__ __forceinline__ void move_to(int eight) { eight_ = eight; }

  template <int block = 0>
  __device__ __forceinline__ void add(const Compute (&values)[Epilogue::blocks],
                                      const BlockElement& at) {
    if constexpr (block < Epilogue::blocks) {
      using Reducer = ReducerOfBlock<block>;
      Compute& value = values_[block][at.row_of_patch][eight_ / eights<block>()];
      value = Reducer::both(value, Reducer::of(values[block]));
      add<block + 1>(values, at);
    }
  }

  /// Called by all lanes of the warp.
  template <int block = 0>
  __device__ __forceinline__ void finish() {
    if constexpr (block < Epilogue::blocks) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
#pragma unroll
        for (int at = 0; at < count<block>(); ++at)
          values_[block][row][at] =
              ReducerOfBlock<block>::across_lanes(values_[block][row][at], 1, lanes<block>());
      }
      finish<block + 1>();
    }
  }

  template <int block = 0>
  __device__ __forceinline__ void read(Compute (&values)[Epilogue::blocks],
                                       const BlockElement& at) const {
    if constexpr (block < Epilogue::blocks) {
      values[block] = values_[block][at.row_of_patch][eight_ / eights<block>()];
      read<block + 1>(values, at);
    }
  }

 private:
  template <int block>
  using ReducerOfBlock = Reducer<Epilogue::block[block].reduction, Compute>;

  template <int block>
  GEMMERY_HOST_DEVICE
  static constexpr int width() {
    constexpr abi::EpilogueBlock of = Epilogue::block[block];
    static_assert(of.rows == 1 && of.columns >= 2 && columns % of.columns == 0 &&
                      (of.columns & (of.columns - 1)) == 0,
                  "blocks of one row, of a power of two of columns within a staging tile");
    return static_cast<int>(of.columns);
  }
  /// The columns of a block by eights; a narrower block is one of several of the same eight.
  template <int block>
  GEMMERY_HOST_DEVICE
  static constexpr int eights() { return width<block>() < 8 ? 1 : width<block>() / 8; }
  template <int block>
  GEMMERY_HOST_DEVICE
  static constexpr int lanes() { return width<block>() < 8 ? width<block>() / 2 : 4; }
  /// The blocks that a thread has columns of.
  template <int block>
  GEMMERY_HOST_DEVICE
  static constexpr int count() { return columns / 8 / eights<block>(); }

  Compute values_[Epilogue::blocks][2][columns / 8];
  int eight_ = 0;
};

/// What a warpgroup's program keeps of blocks: nothing if it has none.
template <class Epilogue, class Compute, int columns, bool are_used = has_blocks<Epilogue>()>
struct BlocksOfStaging {
  using Type = NoBlocks;
};
template <class Epilogue, class Compute, int columns>
struct BlocksOfStaging<Epilogue, Compute, columns, true> {
  using Type = QuadBlocks<Epilogue, Compute, columns>;
};

}  // namespace gemmery::device
