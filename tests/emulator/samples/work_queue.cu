// SPDX-License-Identifier: Apache-2.0
// Persistent blocks take rows from a queue until it is empty; thread 0 asks, all threads read what
// it got. The second barrier keeps it from asking again before they have.
__device__ int next_row = 0;

__global__ void work_queue(const int* in, int* out, int rows) {
  __shared__ int row;
  while (true) {
    if (threadIdx.x == 0) row = atomicAdd(&next_row, 1);  // fault: while others still read it
    __syncthreads();
    const int own = row;
#ifndef FAULT
    __syncthreads();
#endif
    if (own >= rows) return;
    out[own * 64 + threadIdx.x] = in[own * 64 + threadIdx.x] + own;
  }
}
