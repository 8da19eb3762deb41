// SPDX-License-Identifier: Apache-2.0
// Softmax of each row by one block of 128 threads. One array in shared memory holds the warps'
// maxima and then their sums, so everybody must have read the maxima before the sums are stored.
__device__ float of_block(float value, bool is_sum, float* of_warps) {
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(~0u, value, step);
    value = is_sum ? value + other : fmaxf(value, other);
  }
  if (threadIdx.x % 32 == 0)
    of_warps[threadIdx.x / 32] = value;  // fault: the maxima are still read
  __syncthreads();
  value = of_warps[0];
  for (int warp = 1; warp < 4; ++warp)
    value = is_sum ? value + of_warps[warp] : fmaxf(value, of_warps[warp]);  // fault
#ifndef FAULT
  __syncthreads();
#endif
  return value;
}

__global__ void softmax(const float* in, float* out, int columns) {
  __shared__ float of_warps[4];
  const float* const row = in + blockIdx.x * columns;
  float most = -__int_as_float(0x7f800000);
  for (int column = threadIdx.x; column < columns; column += 128) most = fmaxf(most, row[column]);
  most = of_block(most, false, of_warps);
  float sum = 0;
  for (int column = threadIdx.x; column < columns; column += 128) sum += expf(row[column] - most);
  sum = of_block(sum, true, of_warps);
  for (int column = threadIdx.x; column < columns; column += 128)
    out[blockIdx.x * columns + column] = expf(row[column] - most) / sum;
}
