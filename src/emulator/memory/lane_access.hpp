// SPDX-License-Identifier: Apache-2.0
// A warp's access to memory.
#pragma once

#include <cstdint>

namespace gemmery::emulator {

// An access of one warp (or of one asynchronous operation in the form of one lane).
struct LaneAccess {
  std::uint32_t active = 0;                  // lanes
  const std::uint64_t* addresses = nullptr;  // of lanes, 32 entries
  std::uint32_t bytes = 0;                   // per lane; a power of two up to 32, naturally aligned
};

// Replaces the old value of an atomic by the new one.
using LaneUpdate = void (*)(void* value, const void* operand);

// Whether an atomic's operand is defined, and whether it alone determines the new value (exch).
struct UpdateDefinedness {
  bool is_operand_defined = true;
  bool replaces = false;
};

}  // namespace gemmery::emulator
