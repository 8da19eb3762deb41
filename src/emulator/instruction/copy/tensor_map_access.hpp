// SPDX-License-Identifier: Apache-2.0
// Tensor maps where a kernel keeps them: among its parameters, in constant or global memory, and,
// while tensormap.replace works on one, in shared memory.
#pragma once

#include <cstdint>

#include "emulator/instruction/copy/copy_operands.hpp"
#include "emulator/memory/tensor_map.hpp"

namespace gemmery::emulator {

inline constexpr std::uint32_t map_bytes = sizeof(TensorMapBytes);
inline constexpr std::uint32_t map_alignment = 64;

// The map at a generic address, as an instruction that copies uses it: in a parameter, constant or
// global memory, valid and of a layout that is known. Throws Fault (tensor_map). Nothing is noted:
// note_map_use does that when it is known when the copy will have completed.
TensorMapFields load_tensor_map(Warp& warp, int lane, std::uint64_t address);

// Notes that an asynchronous copy uses the map until it completes, at `who.epoch`: a change of it
// meanwhile is a race. Throws Fault where a change before was not handed to the tensor-map proxy.
void note_map_use(Cluster& cluster, std::uint64_t address, Accessor who);

}  // namespace gemmery::emulator
