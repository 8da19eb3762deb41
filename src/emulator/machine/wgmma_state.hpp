// SPDX-License-Identifier: Apache-2.0
// A warp's part of its warpgroup's asynchronous matrix operations.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/check/clock.hpp"
#include "emulator/program/program.hpp"

namespace gemmery::emulator {

// Values are computed at issue. Until wgmma.wait_group, the registers and tiles must not be
// touched.
struct WgmmaState {
  AgentIndex strand = ~AgentIndex{0};  // reads of shared memory: group g is its clock g
  std::uint32_t committed = 0;         // groups
  std::uint32_t completed = 0;         // groups that were waited for
  bool has_open_group = false;
  // A register that a pending wgmma writes (accumulator) or reads (A fragment).
  struct InFlight {
    RegisterIndex reg;
    std::uint32_t group;  // the group it will be committed in
    bool is_written;
    std::uint32_t pc;
  };
  std::vector<InFlight> in_flight;  // usually empty; nothing is checked then
  // True if other instructions wrote registers since the last wgmma.fence: a wgmma that uses them
  // needs the fence first.
  bool needs_fence = true;
  std::vector<RegisterIndex> touched_since_fence;
};

}  // namespace gemmery::emulator
