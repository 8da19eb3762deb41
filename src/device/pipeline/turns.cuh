// SPDX-License-Identifier: Apache-2.0
// Turns of two or three warpgroups that multiply one after the other. Without turns, the warpgroup
// that is ahead would test a stage whose previous phase has not ended and mistake its parity for
// that of the phase that it waits for.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/ptx/fence.cuh>

namespace gemmery::device {

inline constexpr int turn_threads =
    2 * abi::warpgroup_threads;                    // one warpgroup passes it, one waits
inline constexpr unsigned first_turn_barrier = 8;  // lower ones belong to the epilogue

/// Waits until the previous consumer has passed the turn. The very first tile needs no turn.
__device__ __forceinline__ void wait_for_turn(unsigned consumer) {
  ptx::bar_sync<turn_threads>(first_turn_barrier + consumer);
}

/// Passes the turn to the next of `count` consumers, which must wait for it: not after the last
/// tile.
template <unsigned count>
__device__ __forceinline__ void pass_turn(unsigned consumer) {
  ptx::bar_arrive<turn_threads>(first_turn_barrier + (consumer + 1 == count ? 0 : consumer + 1));
}

}  // namespace gemmery::device
