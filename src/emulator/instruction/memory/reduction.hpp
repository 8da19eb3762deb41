// SPDX-License-Identifier: Apache-2.0
// Elementwise reductions of cp.reduce.async.bulk: an update of one element or of a chunk of 16
// bytes.
#pragma once

#include <cstdint>
#include <string_view>

#include "emulator/memory/global_memory.hpp"
#include "emulator/program/scalar_type.hpp"

namespace gemmery::emulator {

struct Reduction {
  LaneUpdate element = nullptr;  // of element_bytes
  LaneUpdate chunk = nullptr;    // of 16 bytes
  std::uint32_t element_bytes = 0;
};

// Finds "add", "min", "max", "inc", "dec", "and", "or" or "xor"; `element` is null if the type has
// no such reduction (PTX ISA, cp.reduce.async.bulk). f16 and bf16 keep subnormals (.noftz); f32 add
// flushes them to zeros of their sign, as the manual states for global memory.
Reduction find_reduction(std::string_view operation, ScalarType type) noexcept;

}  // namespace gemmery::emulator
