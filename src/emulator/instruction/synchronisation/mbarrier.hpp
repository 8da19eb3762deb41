// SPDX-License-Identifier: Apache-2.0
// mbarriers as asynchronous copies use them: they count bytes and arrive.
#pragma once

#include <cstdint>

#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

// The mbarrier at a shared offset. Throws Fault (mbarrier_misuse) if it was not initialised or was
// overwritten; `doing` names the operation: "complete_tx of a bulk copy".
Mbarrier& live_mbarrier(Cta& cta, std::uint32_t offset, const char* doing);

// The epoch of an asynchronous operation whose bytes (or arrival) count in the current phase: the
// number of that phase, counted from 1. Call it right before the memory is written and
// complete_bytes is called; the phase is not known earlier. A waiter that sees the phase complete
// knows `happened[agent]` = number of completed phases, and so knows the operation.
inline Epoch epoch_of_phase(const Cluster& cluster, const Mbarrier& barrier) noexcept {
  return Epoch(cluster.index, barrier.agent, barrier.phase + 1);
}

// complete_tx by an operation of the async proxy.
void complete_bytes(Cluster& cluster, Cta& cta, std::uint32_t offset, std::int64_t bytes);

// cp.async.mbarrier.arrive. Without .noinc, the current phase waits for one more arrival from the
// execution of the instruction on. With .noinc the arrival is one of those that init counted.
void add_pending_arrival(Cta& cta, std::uint32_t offset);
// The arrival itself, once the thread's copies are complete. `knowledge` is the issuer's, including
// its copies.
void async_arrive(Cluster& cluster, Cta& cta, std::uint32_t offset, const Knowledge& knowledge);

}  // namespace gemmery::emulator
