// SPDX-License-Identifier: Apache-2.0
// The state of barriers: named ones (bar, barrier.cta), that of the cluster, and mbarriers.
#pragma once

#include <cstdint>
#include <map>

#include "emulator/check/clock.hpp"

namespace gemmery::emulator {

// bar.sync / bar.arrive / bar.red of one id. Threads count in whole warps.
struct NamedBarrier {
  std::uint32_t expected_threads = 0;  // of the generation under way; 0 = nobody has come
  std::uint32_t arrived_threads = 0;
  std::uint32_t arrived_warps_mask[1] = {};  // bit per warp (at most 32 warps in a CTA)
  std::uint64_t generation = 0;              // completed so far
  std::uint32_t first_pc = 0;                // of the first arrival, for reports
  bool reduction_and = true, reduction_or = false;
  std::uint32_t reduction_count = 0;
  // Of the generation that completed last, for those that still pick it up.
  bool result_and = false, result_or = false;
  std::uint32_t result_count = 0;
  Knowledge gathering;                           // of those that have arrived
  std::map<std::uint64_t, Knowledge> completed;  // by generation, until all waiters have it
  std::map<std::uint64_t, std::uint32_t> waiters;
};

// barrier.cluster.arrive / wait.
struct ClusterBarrier {
  std::uint32_t arrived_warps = 0;
  std::uint64_t generation = 0;
  Knowledge gathering;
  Knowledge completed;                                        // of the last generation
  std::map<std::uint32_t, std::uint64_t> arrived_generation;  // by warp agent: arrived, not waited
};

// An mbarrier object. The 8 bytes in shared memory hold a mark (so that copying or overwriting is
// noticed); the truth is here.
struct Mbarrier {
  AgentIndex agent = 0;
  std::uint32_t count = 0;         // arrivals per phase
  std::uint32_t pending = 0;       // arrivals still to come in this phase
  std::int64_t pending_bytes = 0;  // expect_tx minus complete_tx of this phase
  std::uint32_t phase = 0;         // completed phases; its parity is that of the current phase
  std::uint32_t init_pc = 0;
  Knowledge gathering;  // released into the current phase
  Knowledge completed;  // of the phase before; with it `happened[agent]` = phase
  std::uint64_t mark = 0;
};

}  // namespace gemmery::emulator
