// SPDX-License-Identifier: Apache-2.0
// Predicts the time of a kernel that copies operands within device memory.
#pragma once

#include <gemmery/device.hpp>

namespace gemmery::model {

// `bytes`: read and written; 0: there is no such kernel.
inline double copy_microseconds(double bytes, const DeviceInfo& device) noexcept {
  if (bytes == 0) return 0;
  // From the end of the kernel before to the first bytes, and from the last ones to the start of
  // the kernel behind it: what 128^3 takes beside its arithmetic (tiled_gemm.cpp).
  constexpr double launch_us = 2.5;
  // Share of the data sheet's bandwidth: two copies of 4097^2 elements of 2 bytes to lines of 4104
  // ran at 2.6 of 4.8 TB/s (H200), by another kernel than ours, which is not measured yet.
  constexpr double reachable_bandwidth = 0.54;
  return launch_us + bytes / (device.bandwidth_bytes_per_second * reachable_bandwidth) * 1e6;
}

}  // namespace gemmery::model
