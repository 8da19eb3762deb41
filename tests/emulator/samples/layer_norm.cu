// SPDX-License-Identifier: Apache-2.0
// Normalises each row to mean 0 and variance 1, then scales and shifts it. One warp computes the
// mean and the variance; the block's other warps read them.
__global__ void layer_norm(const float* in, const float* scale, const float* shift, float* out,
                           int columns) {
  __shared__ float mean, inverse_deviation;
  const float* const row = in + blockIdx.x * columns;
  if (threadIdx.x < 32) {
    float sum = 0, squares = 0;
    for (int column = threadIdx.x; column < columns; column += 32) {
      sum += row[column];
      squares += row[column] * row[column];
    }
    for (int step = 16; step > 0; step /= 2) {
      sum += __shfl_xor_sync(~0u, sum, step);
      squares += __shfl_xor_sync(~0u, squares, step);
    }
    if (threadIdx.x == 0) {
      mean = sum / columns;  // fault: others read it with no order
      inverse_deviation = rsqrtf(squares / columns - sum / columns * (sum / columns) + 1e-5f);
    }
  }
#ifndef FAULT
  __syncthreads();
#endif
  for (int column = threadIdx.x; column < columns; column += blockDim.x) {
    const float normal = (row[column] - mean) * inverse_deviation;
    out[blockIdx.x * columns + column] = normal * scale[column] + shift[column];
  }
}
