// SPDX-License-Identifier: Apache-2.0
// Keeps the positive numbers, in any order: lanes count themselves by a ballot, and one of them
// asks for the warp's places with one atomic. gemmery: allow results differ
__global__ void compact(const int* in, int* out, unsigned* kept, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned lane = threadIdx.x % 32;
  const int value = i < count ? in[i] : 0;
  const unsigned keepers = __ballot_sync(~0u, value > 0);
  unsigned first = 0;
  if (lane == 0) {
#ifdef FAULT
    first = *kept;                    // fault: two warps may get the same places
    *kept = first + __popc(keepers);  // fault
#else
    first = atomicAdd(kept, __popc(keepers));
#endif
  }
  first = __shfl_sync(~0u, first, 0);
  if (value > 0) out[first + __popc(keepers & ((1u << lane) - 1))] = value;
}
