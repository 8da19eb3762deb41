// SPDX-License-Identifier: Apache-2.0
// Predicts the time of a kernel that copies operands within device memory.
#pragma once

#include <gemmery/device.hpp>

namespace gemmery::model {

// Bytes that a kernel reads and writes.
struct CopiedBytes {
  double aligned = 0;  // read by one access of 16 bytes where 16 are written
  double shifted = 0;  // read by several
};

// No bytes: there is no such kernel.
inline double copy_microseconds(const CopiedBytes& bytes, const DeviceInfo& device) noexcept {
  if (bytes.aligned + bytes.shifted == 0) return 0;
  // From the end of the previous kernel to the first bytes, and from the last bytes to the start of
  // the next kernel: the time of 128^3 without its arithmetic (tiled_gemm.cpp).
  constexpr double launch_us = 2.5;
  // Shares of the data sheet's bandwidth. Shifted: 4095^3 of bf16 with copies of A and B takes 307
  // us, 4096x4095x4096 without 201, for 134 MB read and written (H100, h100-sm90-types.md). Copies
  // along columns may take twice as long (4096x4097x4096 with B row major: 315). Aligned: copies in
  // which k is adjacent, of 8 to 134 MB, took 6 to 68 us beside the same kernels without
  // (H100).
  constexpr double shifted_share = 0.38;
  constexpr double aligned_share = 0.7;
  return launch_us + (bytes.aligned / aligned_share + bytes.shifted / shifted_share) /
                         device.bandwidth_bytes_per_second * 1e6;
}

}  // namespace gemmery::model
