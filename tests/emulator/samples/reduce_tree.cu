// SPDX-License-Identifier: Apache-2.0
// The sum of each block's 256 numbers: a tree in shared memory, half as many threads at each step.
__global__ void reduce_tree(const float* in, float* sums) {
  __shared__ float partial[256];
  const unsigned thread = threadIdx.x;
  partial[thread] = in[blockIdx.x * 256 + thread];
  __syncthreads();
  for (unsigned step = 128; step > 0; step /= 2) {
    if (thread < step) partial[thread] += partial[thread + step];  // fault: step before not done
#ifndef FAULT
    __syncthreads();
#endif
  }
  if (thread == 0) sums[blockIdx.x] = partial[0];
}
