// SPDX-License-Identifier: Apache-2.0
// One pass of a separable convolution: rows with a filter of 9 taps in constant memory. A block
// stages 64 pixels of a row, and an apron of 4 at either side by the threads that have a pixel
// there.
constexpr int radius = 4;
__constant__ float taps[2 * radius + 1] = {1, 2, 3, 4, 5, 4, 3, 2, 1};

__global__ void convolution_rows(const float* in, float* out, int columns) {
  __shared__ float row[64 + 2 * radius];
  const int column = blockIdx.x * 64 + threadIdx.x;
  const float* const from = in + blockIdx.y * columns;
  row[threadIdx.x + radius] = column < columns ? from[column] : 0;
  if (threadIdx.x < radius) row[threadIdx.x] = column >= radius ? from[column - radius] : 0;
  if (threadIdx.x >= 64 - radius)
    row[threadIdx.x + 2 * radius] = column + radius < columns ? from[column + radius] : 0;
  __syncthreads();
  float sum = 0;
#ifdef FAULT
  for (int tap = 1; tap <= 2 * radius + 1; ++tap)
#else
  for (int tap = 0; tap <= 2 * radius; ++tap)
#endif
    sum += row[threadIdx.x + tap] * taps[tap];  // fault: the filter has no tap of this number
  if (column < columns) out[blockIdx.y * columns + column] = sum;
}
