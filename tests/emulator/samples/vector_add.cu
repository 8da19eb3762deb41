// SPDX-License-Identifier: Apache-2.0
// One element a thread; the grid covers the vector and a tail beyond it.
#ifdef FAULT
#define BEYOND(i, count) ((i) > (count))
#else
#define BEYOND(i, count) ((i) >= (count))
#endif

__global__ void vector_add(const float* a, const float* b, float* sum, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (BEYOND(i, count)) return;
  sum[i] = a[i] + b[i];  // fault: one element beyond the end
}
