// SPDX-License-Identifier: Apache-2.0
// mbarriers as asynchronous copies see them: they count bytes and arrive.
#pragma once

#include <cstdint>

#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

// The mbarrier at a shared offset. Throws Fault (mbarrier_misuse) where none was initialised, or
// something was written over it; `doing`: "complete_tx of a bulk copy".
Mbarrier& live_mbarrier(Cta& cta, std::uint32_t offset, const char* doing);

// The epoch of an asynchronous operation whose bytes (or whose arrival) are counted in the phase
// under way: its number counting from 1. To be asked for right before the memory is written and
// complete_bytes is called, for only then is the phase known. A waiter that sees the phase complete
// knows `happened[agent]` = number of completed phases, thus the operation.
inline Epoch epoch_of_phase(const Cluster& cluster, const Mbarrier& barrier) noexcept {
  return Epoch(cluster.index, barrier.agent, barrier.phase + 1);
}

// complete_tx by an operation of the async proxy.
void complete_bytes(Cluster& cluster, Cta& cta, std::uint32_t offset, std::int64_t bytes);

// cp.async.mbarrier.arrive. Without .noinc the phase under way waits for one arrival more from the
// moment on when the instruction is executed; with it, it is one of those that init counted.
void add_pending_arrival(Cta& cta, std::uint32_t offset);
// The arrival itself, once the thread's copies are complete. `knowledge`: the issuer's, with its
// copies.
void async_arrive(Cluster& cluster, Cta& cta, std::uint32_t offset, const Knowledge& knowledge);

}  // namespace gemmery::emulator
