// SPDX-License-Identifier: Apache-2.0
// Tensor maps in a kernel's memory: in parameters, in constant or global memory and, while
// tensormap.replace edits one, in shared memory.
#pragma once

#include <cstdint>

#include "emulator/instruction/copy/copy_operands.hpp"
#include "emulator/memory/tensor_map.hpp"

namespace gemmery::emulator {

inline constexpr std::uint32_t map_bytes = sizeof(TensorMapBytes);
inline constexpr std::uint32_t map_alignment = 64;

// Loads the map at a generic address for a copy. It must lie in a parameter, constant or global
// memory, be valid, and have a supported layout; throws Fault (tensor_map) otherwise. Records no
// use: note_map_use does that when the copy's completion is known.
TensorMapFields load_tensor_map(Warp& warp, int lane, std::uint64_t address);

// Records that an asynchronous copy uses the map until it completes at `who.epoch`; a change in the
// meantime is a race. Throws Fault if an earlier change was not released to the tensor-map proxy.
void note_map_use(Cluster& cluster, std::uint64_t address, Accessor who);

}  // namespace gemmery::emulator
