// SPDX-License-Identifier: Apache-2.0
// mbarrier of sm_90: barriers in shared memory on which threads and the bytes of copies arrive, one
// instruction per function.
#pragma once

namespace gemmery::device::ptx {

__device__ inline void mbarrier_init(unsigned barrier, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

/// Arrives, and makes the phase wait for this many bytes of copies.
__device__ inline void mbarrier_arrive_expect_tx(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

__device__ inline void mbarrier_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Arrives at a barrier of another block of the cluster (`mapa` made its address). Never write
/// `.release.cluster` here: ptxas turns it into a fence of the whole device, and tiles of 128x256
/// ran at 75 % of their speed (H200).
__device__ inline void mbarrier_arrive_cluster(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// True if the phase of this parity is over; returns after a limited time. Parity 1 of a fresh
/// barrier counts as over.
__device__ inline bool mbarrier_try_wait_parity(unsigned barrier, unsigned parity) {
  unsigned is_over;
  asm volatile(
      "{\n.reg .pred over;\nmbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
      "selp.u32 %0, 1, 0, over;\n}"
      : "=r"(is_over)
      : "r"(barrier), "r"(parity)
      : "memory");
  return is_over != 0;
}

}  // namespace gemmery::device::ptx
