// SPDX-License-Identifier: Apache-2.0
// A warp's part of its warpgroup's asynchronous matrix operations.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/check/clock.hpp"
#include "emulator/program/program.hpp"

namespace gemmery::emulator {

// Values are computed at issue. The registers and tiles must not be accessed before
// wgmma.wait_group.
struct WgmmaState {
  AgentIndex strand = no_agent;  // reads of shared memory: group g is its clock g
  std::uint32_t committed = 0;   // number of groups
  std::uint32_t completed = 0;   // number of groups that were waited for
  bool has_open_group = false;
  // A register that a pending wgmma writes (accumulator) or reads (A fragment).
  struct InFlight {
    RegisterIndex reg;
    std::uint32_t group;  // the group that its wgmma belongs to
    bool is_written;
    std::uint32_t pc;
  };
  std::vector<InFlight> in_flight;  // usually empty; then checks are skipped
  // True if other instructions wrote registers since the last wgmma.fence: a wgmma that uses them
  // needs the fence first.
  bool needs_fence = true;
  std::vector<RegisterIndex> touched_since_fence;
};

}  // namespace gemmery::emulator
