// SPDX-License-Identifier: Apache-2.0
// A tile of 32 x 32 passes through shared memory, so that reads and writes are both along rows.
// Blocks of 32 x 8 threads; the tile has a column more than it needs, against bank conflicts.
__global__ void transpose(const float* in, float* out, int rows, int columns) {
  __shared__ float tile[32][33];
  const int column = blockIdx.x * 32 + threadIdx.x;
  const int row = blockIdx.y * 32 + threadIdx.y;
  for (int step = 0; step < 32; step += 8)
    if (column < columns && row + step < rows)
      tile[threadIdx.y + step][threadIdx.x] = in[(row + step) * columns + column];
#ifndef FAULT
  __syncthreads();
#endif
  const int out_column = blockIdx.y * 32 + threadIdx.x;
  const int out_row = blockIdx.x * 32 + threadIdx.y;
  for (int step = 0; step < 32; step += 8)
    if (out_column < rows && out_row + step < columns)
      out[(out_row + step) * rows + out_column] =
          tile[threadIdx.x][threadIdx.y + step];  // fault: other warps filled it, no barrier
}
