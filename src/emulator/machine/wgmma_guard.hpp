// SPDX-License-Identifier: Apache-2.0
// Checks other instructions' accesses to registers that asynchronous matrix operations use.
#pragma once

#include "emulator/machine/plan.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

// Throws Fault (in_flight): the step writes a register that a wgmma still uses, or reads one that
// it still writes.
void check_in_flight(const Warp& warp, const PlannedStep& step);

// Records the step's writes to registers of wgmmas, after which the next wgmma needs wgmma.fence.
void note_touched(Warp& warp, const PlannedStep& step, const Plan& plan);

}  // namespace gemmery::emulator
