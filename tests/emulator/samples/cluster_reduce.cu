// SPDX-License-Identifier: Apache-2.0
// A cluster of four blocks adds its numbers: block 0 reads the others' sums in their shared memory,
// which must stay until it has.
__device__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ int read_of_block(const int* at, unsigned rank) {
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(at));
  asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(address) : "r"(rank));
  int value;
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(value) : "r"(address));  // fault
  return value;
}

__global__ void __cluster_dims__(4) cluster_reduce(const int* in, int* sums) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[blockIdx.x * 64 + threadIdx.x]);
  cluster_barrier();
  if (blockIdx.x % 4 == 0 && threadIdx.x == 0) {
    int total = 0;
    for (unsigned rank = 0; rank < 4; ++rank) total += read_of_block(&sum, rank);
    sums[blockIdx.x / 4] = total;
  }
#ifndef FAULT
  cluster_barrier();
#endif
}
