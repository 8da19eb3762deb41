// SPDX-License-Identifier: Apache-2.0
// C = A x B in f16 with f32 accumulators: one warp and one 16 x 16 tile a block, by wmma, the
// instructions behind nvcuda::wmma. The tile of C leaves through shared memory.
using Half = unsigned short;

__global__ void matmul_wmma(const Half* a, const Half* b, float* c, int size) {
  __shared__ float tile[16 * 16];
  unsigned fa[8], fb[8];
  float acc[8] = {};
  for (int k = 0; k < size; k += 16) {
    const Half* const tile_a = a + blockIdx.y * 16 * size + k;
    const Half* const tile_b = b + k * size + blockIdx.x * 16;
    asm volatile(
        "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;"
        : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]), "=r"(fa[4]), "=r"(fa[5]), "=r"(fa[6]),
          "=r"(fa[7])
        : "l"(tile_a), "r"(size));
    asm volatile(
        "wmma.load.b.sync.aligned.row.m16n16k16.global.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8], %9;"
        : "=r"(fb[0]), "=r"(fb[1]), "=r"(fb[2]), "=r"(fb[3]), "=r"(fb[4]), "=r"(fb[5]), "=r"(fb[6]),
          "=r"(fb[7])
        : "l"(tile_b), "r"(size));
    asm volatile(
        "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, "
        "{%8,%9,%10,%11,%12,%13,%14,%15}, {%16,%17,%18,%19,%20,%21,%22,%23}, "
        "{%0,%1,%2,%3,%4,%5,%6,%7};"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3]), "+f"(acc[4]), "+f"(acc[5]),
          "+f"(acc[6]), "+f"(acc[7])
        : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fa[4]), "r"(fa[5]), "r"(fa[6]),
          "r"(fa[7]), "r"(fb[0]), "r"(fb[1]), "r"(fb[2]), "r"(fb[3]), "r"(fb[4]), "r"(fb[5]),
          "r"(fb[6]), "r"(fb[7]));
  }
  asm volatile(
      "wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%0], {%1,%2,%3,%4,%5,%6,%7,%8}, 16;" ::
          "r"(static_cast<unsigned>(__cvta_generic_to_shared(tile))),
      "f"(acc[0]), "f"(acc[1]), "f"(acc[2]), "f"(acc[3]), "f"(acc[4]), "f"(acc[5]), "f"(acc[6]),
      "f"(acc[7])
      : "memory");
#ifndef FAULT
  __syncwarp();
#endif
  for (unsigned at = threadIdx.x; at < 256; at += 32)
    c[(blockIdx.y * 16 + at / 16) * size + blockIdx.x * 16 + at % 16] =
        tile[at];  // fault: elements of other lanes
}
