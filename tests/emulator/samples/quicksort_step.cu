// SPDX-License-Identifier: Apache-2.0
// A partition step: numbers below the pivot go to the front, the others to the back, each at a
// place from one of two counters in shared memory. gemmery: allow results differ
__global__ void quicksort_step(const int* in, int* out, int pivot, int count) {
  __shared__ int below, above;
  if (threadIdx.x == 0) below = 0, above = 0;
#ifndef FAULT
  __syncthreads();
#endif
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const int value = in[i];
    const int at = value < pivot ? atomicAdd(&below, 1)               // fault: not yet zero
                                 : count - 1 - atomicAdd(&above, 1);  // fault: likewise
    out[at] = value;
  }
}
