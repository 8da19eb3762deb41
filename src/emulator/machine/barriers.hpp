// SPDX-License-Identifier: Apache-2.0
// The state of named barriers (bar, barrier.cta), the cluster's barrier and mbarriers, and of the
// registers that a CTA's warpgroups exchange (setmaxnreg).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "emulator/check/clock.hpp"

namespace gemmery::emulator {

inline constexpr std::uint32_t max_warps_per_cta = 32;

// The result of a bar.red of one generation.
struct BarrierReduction {
  bool all = true;
  bool any = false;
  std::uint32_t count = 0;
};

// bar.sync / bar.arrive / bar.red of one id. A warp has arrived when all its live lanes have.
struct NamedBarrier {
  std::uint32_t expected_threads = 0;  // of the current generation; 0: the whole CTA
  std::uint32_t arrived_warps = 0;     // a bit per warp; 0: none has arrived
  std::array<std::uint32_t, max_warps_per_cta> arrived_lanes{};  // of each warp
  std::uint64_t generation = 0;                                  // completed so far
  std::uint32_t first_pc = 0;                                    // of the first arrival
  BarrierReduction reduction;
  // Results of the last completed generations, by generation % size, for late readers.
  std::array<BarrierReduction, 4> results{};
  Knowledge gathering;  // of the arrived warps
  Knowledge completed;  // of the last completed generation
};

// barrier.cluster.arrive / wait.
struct ClusterBarrier {
  struct WarpState {
    std::uint64_t generation = 0;     // the generation at which its lanes have arrived
    std::uint32_t arrived_lanes = 0;  // lanes that have arrived and not waited yet
    std::uint32_t arrive_pc = 0;
    bool has_arrived = false;  // counted in the current generation
  };
  std::uint64_t generation = 0;  // completed so far
  std::uint32_t arrived_warps = 0;
  std::vector<WarpState> warps;  // by agent; made at the first arrival
  Knowledge gathering;
  Knowledge completed;  // of the last generation
  // The events that the threads had executed when they arrived, relaxed or not (RemoteUses).
  VectorClock executing, executed;
};

// The state of an mbarrier. Its 8 bytes in shared memory hold a mark, so that copying or
// overwriting is detected.
struct Mbarrier {
  AgentIndex agent = 0;
  std::uint32_t count = 0;         // arrivals per phase
  std::uint32_t pending = 0;       // missing arrivals of this phase
  std::int64_t pending_bytes = 0;  // expect_tx minus complete_tx of this phase
  std::uint32_t phase = 0;         // completed phases; its parity is that of the current phase
  std::uint32_t init_pc = 0;
  Epoch initialised;
  // The knowledge of all arrivals so far. Each is a read-modify-write, so the release sequence
  // continues through the phases.
  Knowledge gathering;
  Knowledge completed;  // of the previous phase, including `happened[agent]` = phase
  std::uint64_t mark = 0;
};

// setmaxnreg. The pool consists of the registers that the launch gave to all warps.
struct RegisterPool {
  std::uint32_t free_registers = 0;  // released by dec and not taken by inc
  struct Change {
    bool is_increase = false;
    std::uint32_t registers = 0;
    std::uint32_t pc = 0;
  };
  // The changes of each warpgroup in the order of execution; all its warps must make the same ones.
  std::array<std::vector<Change>, max_warps_per_cta / 4> changes;
  std::array<std::uint32_t, max_warps_per_cta> changes_made{};  // by each warp
};

}  // namespace gemmery::emulator
