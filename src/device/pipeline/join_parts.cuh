// SPDX-License-Identifier: Apache-2.0
// Adds the parts of a tile that several blocks of threads have multiplied:
//
//   serial      slice 0 stores its accumulators to the workspace; each later slice adds its own to
//               them when the previous one is done; the last one then has the sum
//   parallel,   every block stores its accumulators to the workspace and increments a counter; the
//   stream      last one to arrive at a tile adds all parts in their order
//
// The order of the additions does not depend on timing: equal inputs give equal bits. Counters
// begin at 0 and are 0 again when a tile is done.
#pragma once

#include <device/ptx/atomic.cuh>
#include <device/schedule/tile_share.cuh>

namespace gemmery::device {

/// A team is the threads of a block that together hold a part of a tile:
///
///   thread()       the number of the calling thread in the team
///   sync()         waits for all threads of the team
///   flag()         the team's word of shared memory
///   leave(slot)    stores the calling thread's accumulators to the workspace
///   add(slot)      adds the accumulators that the thread of the same number stored there
///   clear()        sets the calling thread's accumulators to 0
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

/// The number of parts that a thread may request before it adds the first, if it adds `registers`
/// of each: then the time of one request serves for all of them.
GEMMERY_HOST_DEVICE
constexpr unsigned parts_at_once(int registers) {
  constexpr int most_requested = 128;  // registers, beside the accumulators
  return registers < most_requested ? static_cast<unsigned>(most_requested / registers) : 1;
}

/// Calls add(part) for the parts from the first-th on, in their order. There is no branch between
/// `at_once` of them, or between half of them where fewer are left, and so on: the compiler
/// requests all before it adds the first, as far as it has registers.
template <unsigned at_once, class Add>
__device__ __forceinline__ void for_each_part(unsigned first, unsigned parts, const Add& add) {
#pragma unroll 1
  for (; first + at_once <= parts; first += at_once) {
#pragma unroll
    for (unsigned next = 0; next < at_once; ++next) add(first + next);
  }
  if constexpr (at_once > 1) for_each_part<at_once / 2>(first, parts, add);
}

/// Sets a team's accumulators to the sum of all parts, in their order. A team may have a way of its
/// own, `add_all`.
template <class Team, class SlotOf>
__device__ __forceinline__ void add_all_parts(Team& team, unsigned parts, SlotOf&& slot_of) {
  if constexpr (requires { team.add_all(parts, slot_of); }) {
    team.add_all(parts, slot_of);
  } else {
    team.clear();
#pragma unroll 1
    for (unsigned part = 0; part < parts; ++part) team.add(slot_of(part));
  }
}

/// The same if every part of the tile has a team of its own; true for the last team to arrive.
template <class Shares, class Team>
__device__ __forceinline__ bool join_last(const Shares& shares, const TileShare& share,
                                          unsigned* counter, Team&& team) {
  team.leave(share.slot);
  team.sync();  // waits until all have left their accumulators
  if (team.thread() == 0) *team.flag() = ptx::atom_inc_acq_rel_gpu(counter, share.slices - 1);
  team.sync();  // waits for the count; what thread 0 has acquired, all may read
  if (*team.flag() + 1 != share.slices) return false;
  add_all_parts(team, share.slices, [&](unsigned slice) { return shares.slot_of(share, slice); });
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
