// SPDX-License-Identifier: Apache-2.0
// Adds up the parts of a tile that several blocks of threads have multiplied:
//
//   serial      slice 0 leaves its accumulators in the workspace, each later one adds its own to
//               them once its predecessor is done; the last one has them all
//   parallel,   every block leaves its accumulators in the workspace and counts itself; the last of
//   stream      a tile to arrive adds all parts up in their order
//
// The order of the additions does not depend on time: equal inputs, equal bits. Counters begin at 0
// and are 0 again when a tile is done.
#pragma once

#include <device/ptx/atomic.cuh>
#include <device/schedule/tile_share.cuh>

namespace gemmery::device {

/// A team is the threads of a block that together hold a part of a tile:
///
///   thread()       counts them
///   sync()         waits for all of them
///   flag()         a word of shared memory, their own
///   leave(slot)    puts the calling thread's accumulators into the workspace
///   add(slot)      adds those that its counterpart left there
///   clear()        sets its accumulators to 0
///
/// Returns true if the team now has all of the tile. All its threads call it; `counter` is the
/// tile's.
template <class Team>
__device__ __forceinline__ bool join_serially(const TileShare& share, unsigned* counter,
                                              Team&& team) {
  const bool is_last = share.slice + 1 == share.slices;
  if (share.slice > 0) {
    if (team.thread() == 0) {
      while (ptx::ld_acquire_gpu(counter) != share.slice) {  // waits for the previous slice
      }
    }
    team.sync();  // what thread 0 has acquired, all may read
    team.add(share.slot);
  }
  if (!is_last) team.leave(share.slot);
  team.sync();  // waits until all have left, or read, their accumulators
  if (team.thread() == 0) ptx::st_release_gpu(counter, is_last ? 0U : share.slice + 1);
  return is_last;
}

/// The same for a team of each part of the tile; true for the last one to arrive.
template <class Shares, class Team>
__device__ __forceinline__ bool join_last(const Shares& shares, const TileShare& share,
                                          unsigned* counter, Team&& team) {
  team.leave(share.slot);
  team.sync();  // waits until all have left their accumulators
  if (team.thread() == 0) *team.flag() = ptx::atom_inc_acq_rel_gpu(counter, share.slices - 1);
  team.sync();  // waits for the count; what thread 0 has acquired, all may read
  if (*team.flag() + 1 != share.slices) return false;
  team.clear();
#pragma unroll 1
  for (unsigned slice = 0; slice < share.slices; ++slice) team.add(shares.slot_of(share, slice));
  return true;
}

template <abi::SplitMode mode, class Shares, class Team>
__device__ __forceinline__ bool join_parts(const Shares& shares, const TileShare& share,
                                           unsigned* counter, Team&& team) {
  if (share.slices == 1) return true;
  if constexpr (mode == abi::SplitMode::serial)
    return join_serially(share, counter, team);
  else
    return join_last(shares, share, counter, team);
}

}  // namespace gemmery::device
