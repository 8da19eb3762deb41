// SPDX-License-Identifier: Apache-2.0
// C = A x B in f16 with f32 accumulators by ldmatrix and mma.sync: one warp and one 16 x 8 tile a
// block. The tiles of A and B go through shared memory.
using Half = unsigned short;

__device__ unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

__global__ void matmul_mma(const Half* a, const Half* b, float* c, int size) {
  __shared__ alignas(16) Half tile_a[16][16];
  __shared__ alignas(16) Half tile_b[16][8];
  const unsigned lane = threadIdx.x;
  float acc[4] = {};
  for (int k = 0; k < size; k += 16) {
    for (unsigned at = lane; at < 256; at += 32)
      tile_a[at / 16][at % 16] = a[(blockIdx.y * 16 + at / 16) * size + k + at % 16];
    for (unsigned at = lane; at < 128; at += 32)
      tile_b[at / 8][at % 8] = b[(k + at / 8) * size + blockIdx.x * 8 + at % 8];  // fault
#ifndef FAULT
    __syncwarp();
#endif
    unsigned fa[4], fb[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                 : "r"(shared_address(&tile_a[lane % 16][lane / 16 * 8]))
                 : "memory");
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(fb[0]), "=r"(fb[1])
                 : "r"(shared_address(&tile_b[lane % 16][0]))
                 : "memory");
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
        "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
        : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    __syncwarp();
  }
  float* const to = c + (blockIdx.y * 16 + lane / 4) * size + blockIdx.x * 8 + lane % 4 * 2;
  to[0] = acc[0], to[1] = acc[1];
  to[8 * size] = acc[2], to[8 * size + 1] = acc[3];
}
