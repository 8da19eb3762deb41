// SPDX-License-Identifier: Apache-2.0
// Where the box of a tensor copy begins, and which places hardware refuses.
#pragma once

#include <array>
#include <cstdint>

#include "emulator/memory/tensor_map.hpp"

namespace gemmery::emulator {

// Tensor copies begin at multiples of this many bytes, and stores write whole units of it.
inline constexpr std::uint32_t tensor_unit_bytes = 16;

struct BoxPlace {
  std::array<std::int32_t, max_map_rank> start{};
  std::array<std::uint16_t, 3> offsets{};  // im2col loads, W first
};

// Throws Fault (illegal_instruction) for boxes at which an H100 ended the context with an illegal
// instruction, and for offsets of which it read only the low bits (recorded:
// tests/data/emulator/README.md).
void require_legal_load(const TensorMapFields& map, const BoxPlace& place, int lane);
void require_legal_store(const TensorMapFields& map, const BoxPlace& place, int lane);

}  // namespace gemmery::emulator
