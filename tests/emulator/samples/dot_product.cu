// SPDX-License-Identifier: Apache-2.0
// A dot product of integers: every warp adds its part with one atomic.
__global__ void dot_product(const int* a, const int* b, int* dot, int count) {
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    sum += a[i] * b[i];
#ifdef FAULT
  if (blockIdx.x == 0 && threadIdx.x == 0) *dot = 0;  // fault: other blocks have added already
#endif
  sum = __reduce_add_sync(~0u, sum);
  if (threadIdx.x % 32 == 0) atomicAdd(dot, sum);
}
