// SPDX-License-Identifier: Apache-2.0
// The lanes that take part in an instruction with a membermask.
#pragma once

#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

// All lanes that the membermasks in `slot` name. Throws Fault (divergent_barrier) if a lane's mask
// omits the lane itself, or if lanes that name each other have different masks.
LaneMask members_of(const Warp& warp, const Operation& operation, std::size_t slot,
                    LaneMask active);

}  // namespace gemmery::emulator
