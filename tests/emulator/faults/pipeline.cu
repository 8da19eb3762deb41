// SPDX-License-Identifier: Apache-2.0
// A statement and its mark share a line.
// clang-format off

// A small Hopper GEMM, D = A B^T (bf16, both K-major), sound with FAULT 0; each other value plants
// one fault. The line that must be reported carries `fault N` in a comment.
//
//   producer warp:       wait empty -> expect bytes -> TMA loads A, B (B for both CTAs of a cluster)
//   consumer warpgroup:  wait full -> wgmma -> release the stage -> registers -> shared -> TMA store
#ifndef FAULT
#define FAULT 0
#endif
#ifndef CLUSTER
#define CLUSTER 1
#endif
typedef unsigned int u32;
typedef unsigned long long u64;
struct alignas(64) TensorMap { u64 opaque[16]; };
struct Params {
  unsigned short* d;
  int m, n, k, tiles;
};

constexpr u32 tile_m = 64, tile_n = 64, tile_k = 64, stages = 2;
constexpr u32 a_bytes = tile_m * tile_k * 2, b_bytes = tile_n * tile_k * 2, stage_bytes = a_bytes + b_bytes;
constexpr u32 out_bytes = tile_m * tile_n * 2;
constexpr u32 consumer_warps = 4;

#define DEVICE __device__ __forceinline__
DEVICE u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
DEVICE void init(u32 bar, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count)); }
DEVICE void expect(u32 bar, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory"); }
DEVICE void arrive(u32 bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory"); }
DEVICE void arrive_at(u32 bar, u32 cta) {
  asm volatile("{\n.reg .b32 r;\nmapa.shared::cluster.u32 r, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [r];\n}" ::"r"(bar), "r"(cta) : "memory");
}
DEVICE void wait(u32 bar, u32 parity) {
  u32 done;
  do asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(bar), "r"(parity) : "memory");
  while (!done);
}
DEVICE void load(u32 to, const TensorMap* map, int x, int y, u32 bar) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(bar) : "memory");
}
DEVICE void load_for_both(u32 to, const TensorMap* map, int x, int y, u32 bar) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(bar), "h"((unsigned short)3) : "memory");
}
DEVICE void store(const TensorMap* map, int x, int y, u32 from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x), "r"(y), "r"(from) : "memory");
}
DEVICE void multiply(float (&d)[32], u64 a, u64 b, u32 accumulates) {
#define O8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, p, 1, 1, 0, 0;\n}"
      : O8(0), O8(8), O8(16), O8(24) : "l"(a), "l"(b), "r"(accumulates));
}
DEVICE u64 descriptor(u32 address) {  // K-major, 128-byte swizzle
  return (u64)(address >> 4 & 0x3fff) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}
DEVICE void cluster_sync() { asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory"); }
DEVICE void consumers_sync(u32 threads) { asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory"); }

extern __shared__ unsigned char raw[];

extern "C" __global__ void __launch_bounds__(160) pipeline(const __grid_constant__ TensorMap map_a, const __grid_constant__ TensorMap map_b,
                                                           const __grid_constant__ TensorMap map_d, const Params p) {
  const u32 base = (shared_address(raw) + 1023) & ~1023u;
  const u32 stage_pitch = FAULT == 9 ? stage_bytes - 1024 : stage_bytes;
  const u32 staging = base + stages * stage_bytes, full = staging + 2 * out_bytes, empty = full + 8 * stages;
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, rank = CLUSTER == 2 ? blockIdx.x % 2 : 0;
  if (threadIdx.x == 0 && FAULT != 21) {
    for (u32 s = 0; s < stages; ++s) {
      init(full + 8 * s, 1);
      init(empty + 8 * s, (FAULT == 20 ? 1 : consumer_warps) * CLUSTER);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (CLUSTER == 2 && FAULT != 22) cluster_sync();
  else __syncthreads();

  const int k_blocks = (p.k + (int)tile_k - 1) / (int)tile_k, columns = (p.n + (int)tile_n - 1) / (int)tile_n;
  u32 stage = 0, phase = 0;
  if (warp == consumer_warps) {
    if (lane == 0) {
      for (int t = (int)blockIdx.x; t < p.tiles; t += (int)gridDim.x) {
        // The CTAs of a cluster have the same columns and other rows.
        const int column = CLUSTER == 2 ? t / 2 % columns : t % columns, row = CLUSTER == 2 ? t / 2 / columns * 2 + (int)rank : t / columns;
        for (int kb = 0; kb < k_blocks; ++kb) {
          if (FAULT != 2) wait(empty + 8 * stage, FAULT == 4 ? phase : phase ^ 1);  // fault 4 fault 20 fault 21
          const u32 to = base + stage * stage_pitch, bar = full + 8 * stage;
          expect(bar, FAULT == 3 ? stage_bytes + 16 : FAULT == 26 ? stage_bytes - 16 : stage_bytes);  // fault 2
          load(to, &map_a, kb * (int)tile_k, row * (int)tile_m, bar);  // fault 2 fault 9 fault 14 fault 20
          if (CLUSTER == 2) load_for_both(to + a_bytes + rank * (b_bytes / 2), &map_b, kb * (int)tile_k, column * (int)tile_n + (int)rank * 32, bar);  // fault 11 fault 22
          else load(to + a_bytes, &map_b, kb * (int)tile_k, column * (int)tile_n, bar);  // fault 9
          if (++stage == stages) stage = 0, phase ^= 1;
        }
      }
    }
  } else {
    float acc[32];
    u32 turn = 0;
    for (int t = (int)blockIdx.x; t < p.tiles; t += (int)gridDim.x) {
      const int column = CLUSTER == 2 ? t / 2 % columns : t % columns, row = CLUSTER == 2 ? t / 2 / columns * 2 + (int)rank : t / columns;
      for (int kb = 0; kb < k_blocks; ++kb) {
        if (FAULT != 1) wait(full + 8 * stage, phase);  // fault 3 fault 21 fault 26
        const u32 from = base + stage * stage_pitch;
        if (FAULT != 23) asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (u32 step = 0; step < 4; ++step)
          multiply(acc, descriptor(from) + 2 * step, descriptor(from + a_bytes) + 2 * step, FAULT == 13 || kb + step != 0);  // fault 1 fault 13 fault 23
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        if (FAULT != 6 || kb + 1 < k_blocks) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (CLUSTER == 2) { if (lane < 2) arrive_at(empty + 8 * stage, lane); }  // fault 11 fault 22
        else if (lane == 0) arrive(empty + 8 * stage);  // fault 20
        if (++stage == stages) stage = 0, phase ^= 1;
      }
      if (FAULT != 6) {
#pragma unroll
        for (u32 i = 0; i < 32; ++i) asm volatile("" : "+f"(acc[i])::"memory");
      }
      if (threadIdx.x == 0 && FAULT != 7) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
      consumers_sync(FAULT == 10 && warp < 2 ? 160 : 128);  // fault 10
      const u32 out = staging + (turn++ & 1) * out_bytes, out_row = warp * 16 + lane / 4;
#pragma unroll
      for (u32 i = 0; i < 32; i += 2) {
        u32 pair;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(acc[i + 1]), "f"(acc[i]));  // fault 6
        const u32 at_row = out_row + (i / 2 % 2) * 8, chunk = i / 4;
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(out + at_row * 128 + ((chunk ^ (at_row & 7)) << 4) + lane % 4 * 4), "r"(pair) : "memory");  // fault 7
      }
      if (FAULT != 5) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      consumers_sync(128);
      if (threadIdx.x == 0) {
        store(&map_d, column * (int)tile_n, row * (int)tile_m, out);  // fault 5
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      }
      if (FAULT == 8 && threadIdx.x == 0) p.d[(long)p.m * p.n] = 0;  // fault 8
    }
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
  __syncwarp();
  if (CLUSTER == 2 && !(FAULT == 11 && rank == 1)) cluster_sync();
}
