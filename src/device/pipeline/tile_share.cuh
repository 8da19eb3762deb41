// SPDX-License-Identifier: Apache-2.0
// Which blocks of k of which tile a block of threads multiplies, and how the parts of a tile that
// several blocks multiplied become one:
//
//   serial      slice 0 leaves its accumulators in the workspace, each later one adds its own to
//               them once its predecessor is done; the last one has them all
//   parallel,   every block leaves its accumulators in the workspace and counts itself; the last of
//   stream      a tile to arrive adds all parts up in their order
//
// The order of the additions does not depend on time: equal inputs, equal bits. Counters begin at 0
// and are 0 again when a tile is done.
#pragma once

#include <device/abi/sm80_design.hpp>
#include <device/abi/sm80_params.hpp>
#include <device/ptx/atomic.cuh>
#include <device/ptx/memory.cuh>
#include <device/tile/mma_accumulator.cuh>

namespace gemmery::device {

/// Consecutive blocks of k of one tile.
struct TileShare {
  unsigned tile;
  unsigned first_k_block;
  unsigned k_blocks;
  unsigned slice;   // which part of the tile this is
  unsigned slices;  // parts of the tile
  unsigned slot;    // where its accumulators lie in the workspace, counted in tiles
};

/// The shares of a unit, one after the other: one, or in `stream` some whole tiles, next to those
/// of other units so that they share operands in L2, and then as many as its k blocks reach.
template <abi::SplitMode mode>
class UnitShares {
 public:
  __device__ __forceinline__ UnitShares(const abi::SplitSchedule& schedule, unsigned k_blocks,
                                        unsigned unit)
      : schedule_(schedule), k_blocks_(k_blocks), unit_(unit), next_(0), end_(1) {
    if constexpr (mode == abi::SplitMode::stream) {
      next_ = begin_of(unit);
      end_ = begin_of(unit + 1);
    }
  }

  __device__ bool is_done() const { return next_ >= end_ && is_past_whole_tiles(); }

  __device__ __forceinline__ TileShare take() {
    if constexpr (mode == abi::SplitMode::none) {
      ++next_;
      return {.tile = unit_,
              .first_k_block = 0,
              .k_blocks = k_blocks_,
              .slice = 0,
              .slices = 1,
              .slot = 0};
    } else if constexpr (mode == abi::SplitMode::stream) {
      return is_past_whole_tiles() ? take_of_stream() : take_whole();
    } else {
      ++next_;
      const unsigned tile = schedule_.slice.divide(unit_);
      const unsigned slice = unit_ - tile * schedule_.slices;
      const unsigned first = slice * schedule_.per_unit;
      return {.tile = tile,
              .first_k_block = first,
              .k_blocks = min(schedule_.per_unit, k_blocks_ - first),
              .slice = slice,
              .slices = schedule_.slices,
              .slot = mode == abi::SplitMode::serial ? tile : unit_};
    }
  }

  /// Where part `slice` of a share's tile lies.
  __device__ __forceinline__ unsigned slot_of(const TileShare& share, unsigned slice) const {
    if constexpr (mode == abi::SplitMode::stream) {
      const unsigned tile = share.tile - streamed_from();
      return slot_in_stream(unit_of(tile * k_blocks_) + slice, tile);
    } else {
      return share.slot - share.slice + slice;
    }
  }

 private:
  __device__ bool is_past_whole_tiles() const {
    return mode != abi::SplitMode::stream || wave_ == schedule_.whole;
  }
  /// The first tile of which blocks have parts; from it on they are counted below.
  __device__ unsigned streamed_from() const { return schedule_.whole * schedule_.units; }

  __device__ __forceinline__ TileShare take_whole() {
    const unsigned tile = wave_ * schedule_.units + unit_;
    ++wave_;
    return {.tile = tile,
            .first_k_block = 0,
            .k_blocks = k_blocks_,
            .slice = 0,
            .slices = 1,
            .slot = 0};
  }

  /// A stream's unit takes the k blocks from here, counted over the tiles that are shared.
  __device__ unsigned begin_of(unsigned unit) const {
    return unit * schedule_.per_unit + min(unit, schedule_.longer);
  }
  /// The unit that a k block falls to.
  __device__ unsigned unit_of(unsigned k_block) const {
    const unsigned in_longer = schedule_.longer * (schedule_.per_unit + 1);
    return k_block < in_longer ? k_block / (schedule_.per_unit + 1)
                               : schedule_.longer + (k_block - in_longer) / schedule_.per_unit;
  }
  /// A unit has parts of two tiles at most: of that in which it begins, and of that in which it
  /// ends; all between are its own.
  __device__ unsigned slot_in_stream(unsigned unit, unsigned tile) const {
    return 2 * unit + (schedule_.k_block.divide(begin_of(unit)) == tile ? 0U : 1U);
  }

  __device__ __forceinline__ TileShare take_of_stream() {
    const unsigned tile = schedule_.k_block.divide(next_);
    const unsigned first = tile * k_blocks_;
    const unsigned end = min(end_, first + k_blocks_);
    const unsigned first_unit = unit_of(first);
    const TileShare share{.tile = tile + streamed_from(),
                          .first_k_block = next_ - first,
                          .k_blocks = end - next_,
                          .slice = unit_ - first_unit,
                          .slices = unit_of(first + k_blocks_ - 1) - first_unit + 1,
                          .slot = slot_in_stream(unit_, tile)};
    next_ = end;
    return share;
  }

  const abi::SplitSchedule& schedule_;
  unsigned k_blocks_;
  unsigned unit_;
  unsigned next_;  // of a stream k blocks over all tiles, else whether the share was taken
  unsigned end_;
  unsigned wave_ = 0;  // of whole tiles
};

/// Makes one of the parts of a tile.
template <abi::Sm80Design design>
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

  /// Whether this block has all of the tile now. All threads call it; `holds_sums`: whether this
  /// one's warp does.
  template <class Shares>
  __device__ __forceinline__ bool join(const Shares& shares, const TileShare& share, Sums& sums,
                                       bool holds_sums) {
    if (share.slices == 1) return true;
    if constexpr (design.split == abi::SplitMode::serial)
      return join_serially(share, sums, holds_sums);
    else
      return join_last(shares, share, sums, holds_sums);
  }

 private:
  __device__ __forceinline__ bool join_serially(const TileShare& share, Sums& sums,
                                                bool holds_sums) {
    unsigned* const counter = counters_ + share.tile;
    const bool is_last = share.slice + 1 == share.slices;
    if (share.slice > 0) {
      if (thread_ == 0) {
        while (ptx::ld_acquire_gpu(counter) != share.slice) {  // waits for the slice before
        }
      }
      __syncthreads();  // what thread 0 has acquired, all may read
      if (holds_sums) add(share.slot, sums);
    }
    if (!is_last && holds_sums) leave(share.slot, sums);
    __syncthreads();  // waits until all have left, or read, their accumulators
    if (thread_ == 0) ptx::st_release_gpu(counter, is_last ? 0U : share.slice + 1);
    return is_last;
  }

  template <class Shares>
  __device__ __forceinline__ bool join_last(const Shares& shares, const TileShare& share,
                                            Sums& sums, bool holds_sums) {
    if (holds_sums) leave(share.slot, sums);
    __syncthreads();  // waits until all have left their accumulators
    if (thread_ == 0) *flag_ = ptx::atom_inc_acq_rel_gpu(counters_ + share.tile, share.slices - 1);
    __syncthreads();  // waits for the count; what thread 0 has acquired, all may read
    if (*flag_ + 1 != share.slices) return false;
    if (holds_sums) {
      clear(sums);
#pragma unroll 1
      for (unsigned slice = 0; slice < share.slices; ++slice)
        add(shares.slot_of(share, slice), sums);
    }
    return true;
  }

  /// A lane's accumulators lie in vectors of 16 bytes, [vector][thread].
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
