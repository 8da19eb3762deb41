// SPDX-License-Identifier: Apache-2.0
// One warp fetches tiles of 128 numbers into a ring of two stages, four warps add them up. Each
// stage has two mbarriers: `full`, on which the fetching lanes arrive, and `empty`, on which the
// readers do.
constexpr int stages = 2, tile = 128;
using Barrier = unsigned long long;

__device__ unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}
__device__ void initialise(Barrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
               : "memory");
}
__device__ void arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
__device__ void wait(Barrier* barrier, int parity) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
      "@!done bra again; }" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

__global__ void pipeline_mbarrier(const int* in, int* sums, int tiles) {
  __shared__ int ring[stages][tile];
  __shared__ Barrier full[stages], empty[stages];
  if (threadIdx.x == 0)
    for (int stage = 0; stage < stages; ++stage)
      initialise(&full[stage], 32), initialise(&empty[stage], 128);
  __syncthreads();
  const bool fetches = threadIdx.x >= 128;
  int sum = 0;
  for (int at = 0; at < tiles; ++at) {
    const int stage = at % stages, round = at / stages;
    if (fetches) {
#ifndef FAULT
      wait(&empty[stage], (round + 1) % 2);
#endif
      for (int i = threadIdx.x - 128; i < tile; i += 32) ring[stage][i] = in[at * tile + i];
      arrive(&full[stage]);
    } else {
      wait(&full[stage], round % 2);  // fault: it may be overwritten by now
      sum += ring[stage][127 - threadIdx.x];
      arrive(&empty[stage]);
    }
  }
  if (!fetches) sums[threadIdx.x] = sum;
}
