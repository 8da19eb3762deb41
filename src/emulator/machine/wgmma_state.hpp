// SPDX-License-Identifier: Apache-2.0
// What a warp has of its warpgroup's asynchronous matrix operations.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/check/clock.hpp"
#include "emulator/program/program.hpp"

namespace gemmery::emulator {

// Values are computed when the instruction is issued; what stays in flight is the right to touch
// registers and tiles, until wgmma.wait_group.
struct WgmmaState {
  AgentIndex strand = ~AgentIndex{0};  // reads of shared memory: group g is its clock g
  std::uint32_t committed = 0;         // groups
  std::uint32_t completed = 0;         // groups waited for
  bool has_open_group = false;
  // A register that a wgmma not waited for writes (accumulator) or reads (A fragment).
  struct InFlight {
    RegisterIndex reg;
    std::uint32_t group;  // the group it will be committed in
    bool is_written;
    std::uint32_t pc;
  };
  std::vector<InFlight> in_flight;  // empty most of the time, and then nothing is checked
  // Registers written since the last wgmma.fence (touched by other instructions): a wgmma that uses
  // them needs the fence first.
  bool needs_fence = true;
  std::vector<RegisterIndex> touched_since_fence;
};

}  // namespace gemmery::emulator
