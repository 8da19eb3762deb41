// SPDX-License-Identifier: Apache-2.0
// Each warp adds with shuffles, the first warp adds the warps' sums.
__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(~0u, value, step);
  return value;
}

__global__ void reduce_shuffle(const float* in, float* sums, int count) {
  __shared__ float of_warp[8];
  float value = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) value += in[i];
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
#ifndef FAULT
  __syncthreads();
#endif
  if (threadIdx.x >= 32) return;
  value = threadIdx.x < 8 ? of_warp[threadIdx.x] : 0;  // fault: other warps may still write
  value = warp_sum(value);
  if (threadIdx.x == 0) sums[blockIdx.x] = value;
}
