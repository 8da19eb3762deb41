// SPDX-License-Identifier: Apache-2.0
// Predicts the time of a kernel that copies operands within device memory.
#pragma once

#include <gemmery/device.hpp>

namespace gemmery::model {

// `bytes`: read and written; 0: there is no such kernel.
inline double copy_microseconds(double bytes, const DeviceInfo& device) noexcept {
  if (bytes == 0) return 0;
  // From the end of the previous kernel to the first bytes, and from the last bytes to the start of
  // the next kernel: the time of 128^3 without its arithmetic (tiled_gemm.cpp).
  constexpr double launch_us = 2.5;
  // Share of the data sheet's bandwidth: 4095^3 of bf16 with copies of A and B takes 307 us,
  // 4096x4095x4096 without 201, for 134 MB read and written (H100, h100-sm90-types.md). Copies
  // along columns may take twice as long (4096x4097x4096 with B row major: 315).
  constexpr double reachable_bandwidth = 0.38;
  return launch_us + bytes / (device.bandwidth_bytes_per_second * reachable_bandwidth) * 1e6;
}

}  // namespace gemmery::model
