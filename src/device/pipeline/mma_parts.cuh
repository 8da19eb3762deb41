// SPDX-License-Identifier: Apache-2.0
// Exchanges the accumulators of a tile among sm80 blocks that split its k: to the workspace and
// back.
#pragma once

#include <device/abi/sm80_design.hpp>
#include <device/abi/sm80_params.hpp>
#include <device/pipeline/join_parts.cuh>
#include <device/ptx/memory.cuh>
#include <device/schedule/tile_share.cuh>
#include <device/tile/mma_accumulator.cuh>

namespace gemmery::device {

/// Adds up the parts of a tile.
template <const abi::Sm80Design& design>
class TileParts {
  using Accumulator = MmaAccumulator<design>;
  using Number = typename Accumulator::Number;
  using Register = typename Accumulator::Register;
  using Blocks = WarpBlocks<design>;

 public:
  using Block = Register[Accumulator::registers];
  using Sums = Register[Blocks::rows][Blocks::columns][Accumulator::registers];

  __device__ __forceinline__ TileParts(const abi::Sm80Params& params, unsigned* flag, int thread)
      : counters_(static_cast<unsigned*>(params.workspace)),
        partials_(static_cast<char*>(params.workspace) + params.split.partials),
        flag_(flag),
        thread_(thread) {}

  /// True if this block now has all of the tile. All threads call it; `holds_sums` tells whether
  /// this thread's warp holds accumulators.
  template <class Shares>
  __device__ __forceinline__ bool join(const Shares& shares, const TileShare& share, Sums& sums,
                                       bool holds_sums) {
    return join_parts<design.split>(shares, share, counters_ + share.tile,
                                    Team{*this, sums, holds_sums});
  }

 private:
  /// The team of all threads of the block, some of which hold accumulators.
  struct Team {
    const TileParts& parts;
    Sums& sums;
    bool holds_sums;

    __device__ int thread() const { return parts.thread_; }
    __device__ static void sync() { __syncthreads(); }
    __device__ unsigned* flag() const { return parts.flag_; }
    __device__ __forceinline__ void leave(unsigned slot) const {
      if (holds_sums) parts.leave(slot, sums);
    }
    __device__ __forceinline__ void add(unsigned slot) const {
      if (holds_sums) parts.add(slot, sums);
    }
    __device__ __forceinline__ void clear() const {
      if (holds_sums) TileParts::clear(sums);
    }
  };

  /// The workspace has a lane's accumulators as vectors of 16 bytes, [vector][thread].
  static constexpr int vector_numbers = 16 / static_cast<int>(sizeof(Number));
  static constexpr int vectors = Accumulator::numbers / vector_numbers;
  static constexpr int threads = abi::thread_count(design) / design.warps_k;

  __device__ char* vector_of(unsigned slot, int row, int column, int vector) const {
    const int number = (row * Blocks::columns + column) * vectors + vector;
    return partials_ +
           (static_cast<abi::UInt64>(slot) * (Blocks::rows * Blocks::columns * vectors) + number) *
               (threads * 16) +
           thread_ * 16;
  }

  template <class Visit>
  __device__ __forceinline__ static void for_each(Sums& sums, Visit&& visit) {
#pragma unroll
    for (int row = 0; row < Blocks::rows; ++row) {
#pragma unroll
      for (int column = 0; column < Blocks::columns; ++column)
        visit(row, column, sums[row][column]);
    }
  }

  __device__ __forceinline__ static void clear(Sums& sums) {
    for_each(sums, [](int, int, Block& block) {
      const Number nothing[Accumulator::numbers]{};
      Accumulator::write(block, nothing);
    });
  }

  __device__ __forceinline__ void leave(unsigned slot, Sums& sums) const {
    for_each(sums, [&](int row, int column, Block& block) {
      Number values[Accumulator::numbers];
      Accumulator::read(values, block);
#pragma unroll
      for (int vector = 0; vector < vectors; ++vector)
        ptx::st_global(vector_of(slot, row, column, vector),
                       reinterpret_cast<const ptx::Registers<16>*>(values)[vector]);
    });
  }

  __device__ __forceinline__ void add(unsigned slot, Sums& sums) const {
    for_each(sums, [&](int row, int column, Block& block) {
      Number values[Accumulator::numbers];
      Accumulator::read(values, block);
#pragma unroll
      for (int vector = 0; vector < vectors; ++vector) {
        const auto loaded = ptx::ld_global<16>(vector_of(slot, row, column, vector));
#pragma unroll
        for (int at = 0; at < vector_numbers; ++at)
          values[vector * vector_numbers + at] =
              reinterpret_cast<const Number*>(&loaded)[at] + values[vector * vector_numbers + at];
      }
      Accumulator::write(block, values);
    });
  }

  unsigned* counters_;
  char* partials_;
  unsigned* flag_;  // in shared memory
  int thread_;
};

}  // namespace gemmery::device
