// SPDX-License-Identifier: Apache-2.0
// Exchanges a consumer's accumulators among sm90 blocks that split the k of a tile: to the
// workspace and back (pipeline/register_parts.cuh, pipeline/value_parts.cuh).
#pragma once

#include <device/pipeline/join_parts.cuh>
#include <device/pipeline/part_place.cuh>

namespace gemmery::device {

/// Adds up the parts of a tile.
template <const abi::Sm90Design& design>
class WarpgroupParts {
 public:
  /// `consumer` of the block, `thread` of the warpgroup, `rank` of the block in its cluster.
  __device__ __forceinline__ WarpgroupParts(const abi::Sm90Params& params,
                                            WarpgroupPartsShared<design>& shared, unsigned consumer,
                                            unsigned thread, unsigned rank)
      : place_(params, shared, consumer, thread, rank) {}

  /// True if the share is the whole tile. This is known before the mainloop.
  __device__ static bool finishes_tile(const TileShare& share) {
    return device::finishes_tile<design.split>(share);
  }

  /// True if this consumer now has all accumulators of its share of the tile. All its threads call
  /// it; `rows`: the number of the share's rows that are within out. `sums`: the accumulators, that
  /// a `Team` exchanges (RegisterTeam, ValueTeam).
  template <class Team, class Shares, class Sums>
  __device__ __forceinline__ bool join(const Shares& shares, const TileShare& share, unsigned rows,
                                       Sums& sums) const {
    return join_parts<design.split>(shares, share, place_.counter_of(share.tile),
                                    Team{place_, place_.blocks_with_rows(rows), sums});
  }

 private:
  PartPlace<design> place_;
};

}  // namespace gemmery::device
