// SPDX-License-Identifier: Apache-2.0
// Predicts the time of a kernel that copies operands within device memory.
#pragma once

#include <gemmery/device.hpp>

namespace gemmery::model {

// `bytes`: read and written; 0: there is no such kernel.
inline double copy_microseconds(double bytes, const DeviceInfo& device) noexcept {
  if (bytes == 0) return 0;
  // The launch of a second kernel, and the share of the data sheet's bandwidth: what the copies of
  // 50 problems, of 8 to 540 MB read and written, take beside the same product without (H200,
  // bench/results/h200-copies.md).
  constexpr double launch_us = 5;
  constexpr double reachable_bandwidth = 0.75;
  return launch_us + bytes / (device.bandwidth_bytes_per_second * reachable_bandwidth) * 1e6;
}

}  // namespace gemmery::model
