// SPDX-License-Identifier: Apache-2.0
// What the lanes of a warp ask of a memory.
#pragma once

#include <cstdint>

namespace gemmery::emulator {

// What is asked of memory for one warp (or one asynchronous operation that looks like one lane).
struct LaneAccess {
  std::uint32_t active = 0;                  // lanes
  const std::uint64_t* addresses = nullptr;  // of lanes, 32 entries
  std::uint32_t bytes = 0;  // each lane's; a power of two up to 32, naturally aligned
};

// Gives the new value of an atomic in place of the old one.
using LaneUpdate = void (*)(void* value, const void* operand);

// Of an atomic's operand: is it defined, and does it alone decide the new value (exch)?
struct UpdateDefinedness {
  bool is_operand_defined = true;
  bool replaces = false;
};

}  // namespace gemmery::emulator
