// SPDX-License-Identifier: Apache-2.0
// Clusters of sm_90: blocks that run side by side and reach each other's shared memory.
#pragma once

namespace gemmery::device::ptx {

__device__ inline unsigned cluster_ctarank() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// The address in the cluster's window of what lies at `shared` in block `rank`.
__device__ inline unsigned mapa(unsigned shared, unsigned rank) {
  unsigned address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared), "r"(rank));
  return address;
}

__device__ inline void barrier_cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ inline void barrier_cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

}  // namespace gemmery::device::ptx
