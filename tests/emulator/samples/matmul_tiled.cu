// SPDX-License-Identifier: Apache-2.0
// C = A x B, all of size x size: tiles of 16 x 16 in shared memory, one element of C a thread.
__global__ void matmul_tiled(const float* a, const float* b, float* c, int size) {
  __shared__ float tile_a[16][16], tile_b[16][16];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < size; k += 16) {
    tile_a[y][x] = row < size && k + x < size ? a[row * size + k + x] : 0;  // fault: still read
    tile_b[y][x] = k + y < size && column < size ? b[(k + y) * size + column] : 0;  // fault: too
    __syncthreads();
    for (int inner = 0; inner < 16; ++inner) sum += tile_a[y][inner] * tile_b[inner][x];
#ifndef FAULT
    __syncthreads();
#endif
  }
  if (row < size && column < size) c[row * size + column] = sum;
}
