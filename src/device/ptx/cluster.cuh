// SPDX-License-Identifier: Apache-2.0
// Clusters of sm_90: concurrent blocks that access each other's shared memory.
#pragma once

namespace gemmery::device::ptx {

__device__ inline unsigned cluster_ctarank() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// The address in the cluster's window of shared address `shared` of block `rank`.
__device__ inline unsigned mapa(unsigned shared, unsigned rank) {
  unsigned address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared), "r"(rank));
  return address;
}

/// Stores 16 bytes in a block of the cluster, which arrive at an mbarrier of that block (`mapa`
/// made both addresses).
__device__ inline void st_async_v4(unsigned address, const unsigned (&values)[4],
                                   unsigned barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(address),
      "r"(values[0]), "r"(values[1]), "r"(values[2]), "r"(values[3]), "r"(barrier)
      : "memory");
}

__device__ inline void barrier_cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ inline void barrier_cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

}  // namespace gemmery::device::ptx
