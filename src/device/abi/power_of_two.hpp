// SPDX-License-Identifier: Apache-2.0
// Tests for powers of two, which tiles, warps and access widths must be.
#pragma once

#include <device/abi/host_device.hpp>

namespace gemmery::abi {

GEMMERY_HOST_DEVICE
constexpr bool is_power_of_two(int value) { return value > 0 && (value & (value - 1)) == 0; }

}  // namespace gemmery::abi
