// SPDX-License-Identifier: Apache-2.0
// The lanes that take part in an instruction with a membermask.
#pragma once

#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

// All lanes that the membermasks in `slot` name. Throws Fault: divergent_barrier where a lane
// leaves itself out, or lanes that name each other disagree.
LaneMask members_of(const Warp& warp, const Operation& operation, std::size_t slot,
                    LaneMask active);

}  // namespace gemmery::emulator
