// SPDX-License-Identifier: Apache-2.0
// y = A x with four elements a load; a warp takes a row, whose length is a multiple of 4.
__global__ void matrix_vector(const float* a, const float* x, float* y, int columns) {
  const int row = blockIdx.x * 4 + threadIdx.x / 32;
#ifdef FAULT
  const float* const begin = a + row * (columns - 1);  // a leading dimension that is odd
#else
  const float* const begin = a + row * columns;
#endif
  float sum = 0;
  for (int column = threadIdx.x % 32 * 4; column < columns; column += 128) {
    const float4 left = *reinterpret_cast<const float4*>(begin + column);  // fault: misaligned
    const float4 right = *reinterpret_cast<const float4*>(x + column);
    sum += left.x * right.x + left.y * right.y + left.z * right.z + left.w * right.w;
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) y[row] = sum;
}
