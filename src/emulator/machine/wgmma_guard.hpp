// SPDX-License-Identifier: Apache-2.0
// Registers that asynchronous matrix operations use, as other instructions touch them.
#pragma once

#include "emulator/machine/plan.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

// Throws Fault (in_flight): the step writes a register that a wgmma still uses, or reads one that
// it still writes.
void check_in_flight(const Warp& warp, const PlannedStep& step);

// Remembers what the step wrote of the registers of wgmmas: the next one needs wgmma.fence first.
void note_touched(Warp& warp, const PlannedStep& step, const Plan& plan);

}  // namespace gemmery::emulator
