// SPDX-License-Identifier: Apache-2.0
// Each result is the sum of seven neighbours; a block's numbers and three more at either side are
// staged in shared memory. Beyond the ends there are zeros.
constexpr int radius = 3;

__device__ float at(const float* in, int i, int count) {
#ifdef FAULT
  return i < count ? in[i] : 0;  // fault: the first block's left side is before the beginning
#else
  return i >= 0 && i < count ? in[i] : 0;
#endif
}

__global__ void stencil_1d(const float* in, float* out, int count) {
  __shared__ float staged[128 + 2 * radius];
  const int i = blockIdx.x * 128 + threadIdx.x;
  const int own = threadIdx.x + radius;
  staged[own] = at(in, i, count);
  if (threadIdx.x < radius) {
    staged[own - radius] = at(in, i - radius, count);
    staged[own + 128] = at(in, i + 128, count);
  }
  __syncthreads();
  float sum = 0;
  for (int offset = -radius; offset <= radius; ++offset) sum += staged[own + offset];
  if (i < count) out[i] = sum;
}
