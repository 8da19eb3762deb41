// SPDX-License-Identifier: Apache-2.0
// Reductions of blocks of one row, if adjacent lanes of a warp hold adjacent columns of the row: a
// thread combines its columns of a block, then shuffles combine the lanes.
#pragma once

#include <device/epilogue/program.cuh>
#include <device/epilogue/reduction.cuh>

namespace gemmery::device {

/// The columns of a thread: one run of `run` adjacent ones, which begins at a multiple of `run` in
/// the tile.
template <int run>
struct RunOfLane {
  static constexpr int rows = 1;
  static constexpr int most_blocks = run;

  /// Columns of a block of `width` that the thread has.
  GEMMERY_HOST_DEVICE
  static constexpr int own(int width) { return width < run ? width : run; }
  GEMMERY_HOST_DEVICE
  static constexpr int lanes(int width) { return width / own(width); }
  /// The blocks that the thread has columns of, and which of them has an element.
  GEMMERY_HOST_DEVICE
  static constexpr int blocks(int width) { return run / own(width); }
  __device__ static int place(const BlockElement& at, int width) {
    return at.column_of_run / own(width);
  }
  GEMMERY_HOST_DEVICE
  static constexpr bool takes(int width) { return width % run == 0 || run % width == 0; }
};

/// Those of wgmma's accumulators: in two rows, two of every eight of a staging tile of `columns`.
template <int columns>
struct PairsOfLane {
  static constexpr int rows = 2;
  static constexpr int most_blocks = columns / 8;

  GEMMERY_HOST_DEVICE
  static constexpr int eights(int width) { return width < 8 ? 1 : width / 8; }
  GEMMERY_HOST_DEVICE
  static constexpr int own(int width) { return 2 * eights(width); }
  GEMMERY_HOST_DEVICE
  static constexpr int lanes(int width) { return width / own(width); }
  GEMMERY_HOST_DEVICE
  static constexpr int blocks(int width) { return columns / 8 / eights(width); }
  __device__ static int place(const BlockElement& at, int width) {
    return at.offset % columns / 8 / eights(width);
  }
  GEMMERY_HOST_DEVICE
  static constexpr bool takes(int width) {
    return width >= 2 && columns % width == 0 && (width & (width - 1)) == 0;
  }
};

/// `Held`: which columns a thread has.
template <class Epilogue, class Compute, class Held>
class LaneBlocks {
 public:
  __device__ __forceinline__ LaneBlocks() { clear(); }

  template <int block = 0>
  __device__ __forceinline__ void clear() {
    if constexpr (block < Epilogue::blocks) {
#pragma unroll
      for (int row = 0; row < Held::rows; ++row) {
#pragma unroll
        for (int at = 0; at < Held::blocks(width<block>()); ++at)
          values_[block][row][at] = ReducerOfBlock<block>::nothing();
      }
      clear<block + 1>();
    }
  }

  template <int block = 0>
  __device__ __forceinline__ void add(const Compute (&values)[Epilogue::blocks],
                                      const BlockElement& at) {
    if constexpr (block < Epilogue::blocks) {
      using Reducer = ReducerOfBlock<block>;
      Compute& value = values_[block][at.row_of_patch][Held::place(at, width<block>())];
      value = Reducer::both(value, Reducer::of(values[block]));
      add<block + 1>(values, at);
    }
  }

  /// Called by all lanes of the warp.
  template <int block = 0>
  __device__ __forceinline__ void finish() {
    if constexpr (block < Epilogue::blocks) {
#pragma unroll
      for (int row = 0; row < Held::rows; ++row) {
#pragma unroll
        for (int at = 0; at < Held::blocks(width<block>()); ++at)
          values_[block][row][at] = ReducerOfBlock<block>::across_lanes(
              values_[block][row][at], 1, Held::lanes(width<block>()));
      }
      finish<block + 1>();
    }
  }

  template <int block = 0>
  __device__ __forceinline__ void read(Compute (&values)[Epilogue::blocks],
                                       const BlockElement& at) const {
    if constexpr (block < Epilogue::blocks) {
      values[block] = values_[block][at.row_of_patch][Held::place(at, width<block>())];
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
    static_assert(of.rows == 1 && Held::takes(static_cast<int>(of.columns)),
                  "blocks of one row, of columns that lanes divide");
    return static_cast<int>(of.columns);
  }

  // Entries beyond the blocks that a thread has columns of are never used.
  Compute values_[Epilogue::blocks][Held::rows][Held::most_blocks];
};

/// What a warpgroup's program keeps of blocks: nothing if it has none.
template <class Epilogue, class Compute, class Held, bool are_used = has_blocks<Epilogue>()>
struct BlocksOf {
  using Type = NoBlocks;
};
template <class Epilogue, class Compute, class Held>
struct BlocksOf<Epilogue, Compute, Held, true> {
  using Type = LaneBlocks<Epilogue, Compute, Held>;
};

}  // namespace gemmery::device
