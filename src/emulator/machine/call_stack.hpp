// SPDX-License-Identifier: Apache-2.0
// What a lane keeps of functions that are entered again before they have returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gemmery::emulator {

struct CallStack {
  std::vector<std::byte> saved;   // registers and parameters of callers, the innermost last
  std::uint32_t depth = 0;        // activations that are saved
  std::uint32_t array_bytes = 0;  // of local memory, behind that of all other functions, in use
};

}  // namespace gemmery::emulator
