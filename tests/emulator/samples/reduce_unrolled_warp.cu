// SPDX-License-Identifier: Apache-2.0
// The tree's last six steps are within one warp, which still has to be synchronised: lanes are not
// in step by themselves.
__device__ void finish(float* partial, unsigned lane) {
  float value = partial[lane] + partial[lane + 32];
  for (unsigned step = 16; step > 0; step /= 2) {
    __syncwarp();
    partial[lane] = value;
#ifndef FAULT
    __syncwarp();
#endif
    value += partial[lane + step];  // fault: the other lane has not stored its value
  }
  if (lane == 0) partial[0] = value;
}

__global__ void reduce_unrolled_warp(const float* in, float* sums) {
  __shared__ float partial[128];
  const unsigned thread = threadIdx.x;
  const float* const block = in + blockIdx.x * 256;
  partial[thread] = block[thread] + block[thread + 128];
  __syncthreads();
  if (thread < 64) partial[thread] += partial[thread + 64];
  __syncthreads();
  if (thread < 32) finish(partial, thread);
  if (thread == 0) sums[blockIdx.x] = partial[0];
}
