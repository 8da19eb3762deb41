// SPDX-License-Identifier: Apache-2.0
// One launch: the block that arrives last adds the sums of all. The fence of each writer before its
// ticket and the one of the last block behind it order the sums with that addition.
__device__ unsigned tickets = 0;

__global__ void reduce_last_block(const float* in, float* sums, float* total) {
  __shared__ float partial[128];
  __shared__ bool is_last;
  partial[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
  __syncthreads();
  for (unsigned step = 64; step > 0; step /= 2) {
    if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = partial[0];
#ifndef FAULT
    __threadfence();
#endif
    is_last = atomicAdd(&tickets, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  float sum = 0;
  for (unsigned block = 0; block < gridDim.x; ++block)
    sum += sums[block];  // fault: another block's sum, published by no fence
  *total = sum;
}
