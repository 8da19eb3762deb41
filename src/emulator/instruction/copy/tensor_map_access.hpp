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
// global memory, valid and of a layout that is known. Throws Fault (tensor_map).
TensorMapFields load_tensor_map(Warp& warp, const Operation& operation, int lane,
                                std::uint64_t address);

}  // namespace gemmery::emulator
