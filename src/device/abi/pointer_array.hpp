// SPDX-License-Identifier: Apache-2.0
// A batch of matrices that lie anywhere: its `data` points at an array of their addresses.
#pragma once

#include <device/abi/host_device.hpp>

namespace gemmery::abi {

/// What stands in place of the batch stride then: the host's gemmery::by_pointers.
[[maybe_unused]] constexpr Int64 by_pointers = -0x7fffffffffffffffLL - 1;

}  // namespace gemmery::abi
