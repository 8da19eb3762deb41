// SPDX-License-Identifier: Apache-2.0
// Exclusive prefix sums of each block's 256 numbers: up the tree, then down (Blelloch).
__global__ void scan_blocks(const int* in, int* out) {
  __shared__ int sums[256];
  const unsigned thread = threadIdx.x;
  const unsigned base = blockIdx.x * 256;
  sums[2 * thread] = in[base + 2 * thread];
  sums[2 * thread + 1] = in[base + 2 * thread + 1];
  unsigned distance = 1;
  for (unsigned active = 128; active > 0; active /= 2, distance *= 2) {
    __syncthreads();
    if (thread < active)
      sums[distance * (2 * thread + 2) - 1] += sums[distance * (2 * thread + 1) - 1];
  }
  if (thread == 0) sums[255] = 0;
  for (unsigned active = 1; active <= 128; active *= 2) {
    distance /= 2;
#ifndef FAULT
    __syncthreads();
#endif
    if (thread < active) {
      int& left = sums[distance * (2 * thread + 1) - 1];
      int& right = sums[distance * (2 * thread + 2) - 1];
      const int before = left;  // fault: the step above is another warp's
      left = right;
      right += before;
    }
  }
  __syncthreads();
  out[base + 2 * thread] = sums[2 * thread];
  out[base + 2 * thread + 1] = sums[2 * thread + 1];
}
