// SPDX-License-Identifier: Apache-2.0
// If blocks of threads split tiles: the tile and the blocks of k that a block of threads multiplies
// (pipeline/join_parts.cuh adds the parts).
#pragma once

#include <device/abi/split.hpp>
#include <device/ptx/warp.cuh>

namespace gemmery::device {

/// Consecutive blocks of k of one tile.
struct TileShare {
  unsigned tile;
  unsigned first_k_block;
  unsigned k_blocks;
  unsigned slice;   // the number of this part among those of the tile
  unsigned slices;  // parts of the tile
  unsigned slot;    // place of its accumulators in the workspace, counted in tiles
};

/// The shares of a unit, one after the other. By default there is one. In `stream` a unit first
/// takes some whole tiles, next to those of other units so that they share operands in L2, and then
/// its k blocks of the tiles that all units share.
template <abi::SplitMode mode>
class UnitShares {
 public:
  __device__ __forceinline__ UnitShares(const abi::SplitSchedule& schedule, unsigned k_blocks,
                                        unsigned unit)
      : schedule_(schedule), k_blocks_(k_blocks) {
    begin(unit);
  }

  /// Starts with the shares of another unit.
  __device__ __forceinline__ void begin(unsigned unit) {
    constexpr bool is_stream = mode == abi::SplitMode::stream;
    unit_ = unit;
    next_ = is_stream ? begin_of(unit) : 0;
    end_ = is_stream ? begin_of(unit + 1) : 1;
    wave_ = 0;
  }

  __device__ bool is_done() const { return next_ >= end_ && is_past_whole_tiles(); }

  __device__ __forceinline__ TileShare take() {
    if constexpr (mode == abi::SplitMode::stream) {
      if (!is_past_whole_tiles()) {
        ++wave_;
        return last_of_waves(unit_);
      }
      began_ = next_;
      const TileShare share = share_from(began_, unit_);
      next_ += share.k_blocks;
      return share;
    } else {
      ++next_;
      return share_of(unit_);
    }
  }

  /// The share that was taken last, computed again, so that it need not stay in registers.
  __device__ __forceinline__ TileShare taken_again() const {
    const unsigned unit = ptx::opaque(unit_);
    if constexpr (mode == abi::SplitMode::stream)
      return next_ == begin_of(unit) ? last_of_waves(unit) : share_from(ptx::opaque(began_), unit);
    else
      return share_of(unit);
  }

  /// The slot of part `slice` of a share's tile.
  __device__ __forceinline__ unsigned slot_of(const TileShare& share, unsigned slice) const {
    if constexpr (mode == abi::SplitMode::stream) {
      const unsigned tile = share.tile - streamed_from();
      return slot_in_stream(unit_of(tile * k_blocks_) + slice, tile);
    } else {
      return share.slot - share.slice + slice;
    }
  }

 private:
  __device__ __forceinline__ TileShare whole_tile(unsigned tile) const {
    return {.tile = tile,
            .first_k_block = 0,
            .k_blocks = k_blocks_,
            .slice = 0,
            .slices = 1,
            .slot = 0};
  }

  /// The only share of a unit.
  __device__ __forceinline__ TileShare share_of(unsigned unit) const {
    if constexpr (mode == abi::SplitMode::none) return whole_tile(unit);
    // Neighbouring blocks have the same slice of neighbouring tiles and request the same lines at
    // the same time: 512x512x65536 in 8 slices of 128x128 takes 67.6 us, and 82.2 if they have
    // the slices of one tile (H100, 2026-11-25).
    const unsigned tiles = schedule_.slice.divide(schedule_.units);
    const unsigned slice = unit / tiles;
    const unsigned tile = unit - slice * tiles;
    const unsigned first = slice * schedule_.per_unit;
    return {.tile = tile,
            .first_k_block = first,
            .k_blocks = min(schedule_.per_unit, k_blocks_ - first),
            .slice = slice,
            .slices = schedule_.slices,
            .slot = mode == abi::SplitMode::serial ? tile : tile * schedule_.slices + slice};
  }

  __device__ bool is_past_whole_tiles() const {
    return mode != abi::SplitMode::stream || wave_ == schedule_.whole;
  }
  /// The first of the tiles that units share; k blocks are counted from it on.
  __device__ unsigned streamed_from() const { return schedule_.whole * schedule_.units; }

  /// The whole tile that a stream's unit took last.
  __device__ __forceinline__ TileShare last_of_waves(unsigned unit) const {
    return whole_tile((wave_ - 1) * schedule_.units + unit);
  }

  /// The first k block of a stream's unit, counted over the shared tiles.
  __device__ unsigned begin_of(unsigned unit) const {
    return unit * schedule_.per_unit + min(unit, schedule_.longer);
  }
  /// The unit that multiplies a k block.
  __device__ unsigned unit_of(unsigned k_block) const {
    const unsigned in_longer = schedule_.longer * (schedule_.per_unit + 1);
    return k_block < in_longer ? k_block / (schedule_.per_unit + 1)
                               : schedule_.longer + (k_block - in_longer) / schedule_.per_unit;
  }
  /// A unit has parts of at most two tiles: of the one in which it begins and of the one in which
  /// it ends. It has all of the tiles between them.
  __device__ unsigned slot_in_stream(unsigned unit, unsigned tile) const {
    return 2 * unit + (schedule_.k_block.divide(begin_of(unit)) == tile ? 0U : 1U);
  }

  /// The share of a stream's unit that begins at a k block.
  __device__ __forceinline__ TileShare share_from(unsigned k_block, unsigned unit) const {
    const unsigned tile = schedule_.k_block.divide(k_block);
    const unsigned first = tile * k_blocks_;
    const unsigned first_unit = unit_of(first);
    return {.tile = tile + streamed_from(),
            .first_k_block = k_block - first,
            .k_blocks = min(begin_of(unit + 1), first + k_blocks_) - k_block,
            .slice = unit - first_unit,
            .slices = unit_of(first + k_blocks_ - 1) - first_unit + 1,
            .slot = slot_in_stream(unit, tile)};
  }

  const abi::SplitSchedule& schedule_;
  unsigned k_blocks_;
  unsigned unit_;
  unsigned next_;  // `stream`: the next k block, over all tiles; else 1 if the share was taken
  unsigned end_;
  unsigned began_ = 0;  // `stream`: the first k block of the share that was taken last
  unsigned wave_;       // of whole tiles
};

/// True if the share is the whole tile. This is known before the mainloop.
template <abi::SplitMode mode>
__device__ __forceinline__ bool finishes_tile(const TileShare& share) {
  return mode == abi::SplitMode::serial ? share.slice + 1 == share.slices : share.slices == 1;
}

}  // namespace gemmery::device
