// SPDX-License-Identifier: Apache-2.0
// The swizzled layout of scales: tiles of 128 rows and 4 blocks of k.
#pragma once

#include <device/abi/host_device.hpp>

namespace gemmery::abi {

inline constexpr int swizzled_rows = 128;
inline constexpr int swizzled_blocks = 4;

// The tiles along k of a matrix of scales.
GEMMERY_HOST_DEVICE
constexpr Int64 swizzled_tiles(Int64 blocks) {
  return (blocks + swizzled_blocks - 1) / swizzled_blocks;
}

// The place of the scale of a row and a block along k.
GEMMERY_HOST_DEVICE
constexpr Int64 swizzled_offset(Int64 row, Int64 block, Int64 tiles) {
  return (row / swizzled_rows * tiles + block / swizzled_blocks) * 512 + row % 32 * 16 +
         row % swizzled_rows / 32 * 4 + block % swizzled_blocks;
}

}  // namespace gemmery::abi
