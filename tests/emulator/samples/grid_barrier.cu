// SPDX-License-Identifier: Apache-2.0
// Two phases with a barrier of the whole grid between them, made of one counter: every block
// fences and arrives, and waits until all have. The grid must fit on the device.
__device__ unsigned arrived = 0;

__device__ void wait_for_grid(unsigned blocks) {
  __syncthreads();
  if (threadIdx.x == 0) {
#ifndef FAULT
    __threadfence();
#endif
    atomicAdd(&arrived, 1);
    while (*reinterpret_cast<volatile unsigned*>(&arrived) < blocks) {
    }
    __threadfence();
  }
  __syncthreads();
}

__global__ void grid_barrier(const int* in, int* middle, int* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  middle[i] = in[i] * in[i];
  wait_for_grid(gridDim.x);
  out[i] = middle[(i + blockDim.x) % count] - middle[i];  // fault: another block's number
}
