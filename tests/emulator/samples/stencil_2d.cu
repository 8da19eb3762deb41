// SPDX-License-Identifier: Apache-2.0
// Several steps of a five-point stencil on a periodic tile of 16 x 16 that stays in shared memory:
// all threads read, a barrier, all threads write, a barrier.
__global__ void stencil_2d(const int* in, int* out, int steps) {
  __shared__ int tile[16][16];
  const int x = threadIdx.x, y = threadIdx.y;
  const int at = blockIdx.x * 256 + y * 16 + x;
  tile[y][x] = in[at];
  __syncthreads();
  for (int step = 0; step < steps; ++step) {
    const int next = tile[y][(x + 1) % 16] + tile[y][(x + 15) % 16] + tile[(y + 1) % 16][x] +
                     tile[(y + 15) % 16][x] - 3 * tile[y][x];
#ifdef FAULT
    if (next != 0) __syncthreads();  // fault: part of a warp may go around the barrier
#else
    __syncthreads();
#endif
    tile[y][x] = next;
    __syncthreads();
  }
  out[at] = tile[y][x];
}
