// SPDX-License-Identifier: Apache-2.0
// One warpgroup multiplies 64 x 16 by 16 x 8 in bf16 out of shared memory by wgmma, for each step
// of k. Tiles consist of core matrices of 8 rows of 16 bytes, those along k 128 bytes apart.
using Bfloat = unsigned short;

__device__ unsigned long long descriptor(const void* tile) {
  const unsigned long long address = __cvta_generic_to_shared(tile);
  return address >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32;
}

__global__ void matmul_wgmma(const Bfloat* a, const Bfloat* b, float* c, int depth) {
  __shared__ alignas(128) Bfloat tile_a[8][2][8][8];  // rows / 8, k / 8, row, k
  __shared__ alignas(128) Bfloat tile_b[2][8][8];     // k / 8, column, k
  const unsigned thread = threadIdx.x;
  float acc[4] = {};
  for (int k = 0; k < depth; k += 16) {
    for (unsigned at = thread; at < 64 * 16; at += 128)
      tile_a[at / 128][at % 16 / 8][at / 16 % 8][at % 8] = a[at / 16 * depth + k + at % 16];
    if (thread < 128) {
      const unsigned row = thread / 8, column = thread % 8;
      tile_b[row / 8][column][row % 8] = b[(k + row) * 8 + column];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
        : "l"(descriptor(tile_a)), "l"(descriptor(tile_b))
        : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#ifdef FAULT
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
#else
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
    __syncthreads();
  }
  const unsigned row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
  c[row * 8 + column] = acc[0];  // fault: the accumulator of an instruction in flight
  c[row * 8 + column + 1] = acc[1];
  c[(row + 8) * 8 + column] = acc[2];
  c[(row + 8) * 8 + column + 1] = acc[3];
}
