// SPDX-License-Identifier: Apache-2.0
// Waiting for an mbarrier.
#pragma once

#include <device/ptx/mbarrier.cuh>

namespace gemmery::device {

/// Waits until the phase of this parity is over.
__device__ __forceinline__ void wait_for_phase(unsigned barrier, unsigned parity) {
  while (!ptx::mbarrier_try_wait_parity(barrier, parity)) {
  }
}

}  // namespace gemmery::device
