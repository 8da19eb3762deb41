// SPDX-License-Identifier: Apache-2.0
// Reads the tile of a descriptor from shared memory, as the async proxy does, into packed rows.
#pragma once

#include <cstdint>
#include <span>

#include "emulator/check/shadow.hpp"
#include "emulator/instruction/matrix/matrix_descriptor.hpp"
#include "emulator/memory/shared_memory.hpp"

namespace gemmery::emulator {

// Bytes of K in each row of one wgmma, for all types.
inline constexpr std::uint32_t wgmma_row_bytes = 32;

struct TileRows {
  std::uint32_t first = 0;  // a multiple of 8, as is
  std::uint32_t count = 0;
  bool is_mn_major = false;  // 16-bit elements
};

// Copies the rows in sequence, wgmma_row_bytes each. Throws Fault: out of bounds, unwritten, a
// race, or a missing proxy fence.
void read_tile(SharedMemory& memory, const MatrixDescriptor& descriptor, const TileRows& rows,
               const Accessor& who, std::span<std::byte> to);

}  // namespace gemmery::emulator
