// SPDX-License-Identifier: Apache-2.0
// A batch by pointers: `data` points at an array of the addresses of its matrices. This file
// computes the coordinates by which a tensor map reaches each of them.
#pragma once

#include <device/abi/host_device.hpp>

namespace gemmery::abi {

/// The batch stride of such a batch: the host's gemmery::by_pointers.
[[maybe_unused]] constexpr Int64 by_pointers = -0x7fffffffffffffffLL - 1;

// --- tensor maps --------------------------------------------------------------------------------
//
// A tensor map for a batch by pointers begins at a fixed address. Instead of the batch it has two
// dimensions that overlap all others: `near` counts units of 16 bytes, `far` units of 2^35 bytes.
// The two coordinates encode the distance of a matrix from the map's address, so one map, encoded
// on the host, serves all matrices. Distances are below 2^64 and wrap, as TMA's addresses do (H100,
// 2026-11-25): a matrix may lie before the map's address.

[[maybe_unused]] constexpr UInt64 near_extent = UInt64{1} << 31;
[[maybe_unused]] constexpr UInt64 far_extent = UInt64{1} << 29;
[[maybe_unused]] constexpr UInt64 near_step_bytes = 16;
[[maybe_unused]] constexpr UInt64 far_step_bytes = near_extent * near_step_bytes;

struct MapDistance {
  int near;
  int far;
};

/// The coordinates of a matrix. Its address must be a multiple of 16 bytes.
GEMMERY_HOST_DEVICE
constexpr MapDistance map_distance(UInt64 map_address, UInt64 matrix_address) {
  const UInt64 distance = matrix_address - map_address;
  return {static_cast<int>(distance / near_step_bytes % near_extent),
          static_cast<int>(distance / far_step_bytes)};
}

/// The address of a map: that of the array, which is always in device memory, rounded down to a
/// multiple of 16 bytes.
GEMMERY_HOST_DEVICE
constexpr UInt64 map_address(UInt64 array_address) {
  return array_address / near_step_bytes * near_step_bytes;
}

}  // namespace gemmery::abi
