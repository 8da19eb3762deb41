// SPDX-License-Identifier: Apache-2.0
// A thread's own memories: local memory and the parameters of the launch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/machine/warp.hpp"
#include "emulator/memory/lane_access.hpp"

namespace gemmery::emulator {

// Like GlobalMemory's functions, lane by lane. They throw Fault: out_of_bounds, misaligned.
LaneMask load_local(Warp& warp, const LaneAccess& access, void* to, std::uint32_t stride,
                    std::uint32_t* written);
void store_local(Warp& warp, const LaneAccess& access, const void* from, std::uint32_t stride,
                 LaneMask defined, const std::uint32_t* written);
// The parameters are the same in all lanes and always defined.
void load_parameters(Warp& warp, const LaneAccess& access, void* to, std::uint32_t stride);

}  // namespace gemmery::emulator
