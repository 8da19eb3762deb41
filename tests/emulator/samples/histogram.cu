// SPDX-License-Identifier: Apache-2.0
// Counts of 64 bins: atomics on the block's own bins in shared memory, then on those of all.
__global__ void histogram(const unsigned char* values, unsigned* bins, int count) {
  __shared__ unsigned own[64];
  if (threadIdx.x < 64) own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
#ifdef FAULT
    ++own[values[i] % 64];  // fault: two threads may count in one bin
#else
    atomicAdd(&own[values[i] % 64], 1);
#endif
  }
  __syncthreads();
  if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
