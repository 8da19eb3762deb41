// SPDX-License-Identifier: Apache-2.0
// The cost of arithmetic while wgmmas run: one warpgroup of each multiprocessor multiplies, 1 to 3
// others run one kind of instruction, or a formula; alone and at the same time. docs/performance.md
// has the figures.
//
//   nvcc -gencode arch=compute_90a,code=sm_90a -O3 -std=c++20 bench/peers/beside_wgmma.cu
//
// Prints for each kind the clocks from one instruction of a warp to the next, alone and while
// wgmmas run, and the clocks of an m64n128k16, which takes 64 when undisturbed.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

namespace {

constexpr int warpgroup = 128;
constexpr int most_chains = 16;
constexpr int unrolled = 64;  // instructions in the body of the timed loop
constexpr int stage_bytes = 48 * 1024;
constexpr int products_in_loop = 8;

enum class Kind {
  ffma,
  ffma_immediate,
  fadd_immediate,
  hfma2,
  fmnmx,
  lop3,
  ffma_and_fmnmx,
  ex2,
  gelu,      // of x + a, as epilogues of 16 bits compute it: 10 instructions, one of them slow
  gelu_tanh  // likewise: 9, two of them slow
};

__device__ __forceinline__ float ex2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float relu(float x) {
  float y;
  asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float gelu(float x) {
  const float a = fminf(fabsf(x), 13.5F);
  float p = __fmaf_rn(a, 0.00255139032F, -0.0365513079F);
  p = __fmaf_rn(p, a, -0.481105387F);
  p = __fmaf_rn(p, a, -1.14051056F);
  p = __fmaf_rn(p, a, -1.00086796F);
  return __fmaf_rn(-a, ex2(p), relu(x));
}
__device__ __forceinline__ float gelu_tanh(float x) {
  return x * reciprocal(1.0F + ex2(x * __fmaf_rn(-0.1029432F, x * x, -2.302208F)));
}

template <Kind kind>
__device__ __forceinline__ void issue(float& x, float a, float b, int index) {
  unsigned& bits = reinterpret_cast<unsigned&>(x);
  const unsigned a_bits = __float_as_uint(a);
  const unsigned b_bits = __float_as_uint(b);
  const bool takes_ffma = kind == Kind::ffma || (kind == Kind::ffma_and_fmnmx && index % 2 == 0);
  if (takes_ffma) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(a), "f"(b));
  if (kind == Kind::fmnmx || (kind == Kind::ffma_and_fmnmx && index % 2 == 1))
    asm volatile("max.f32 %0, %0, %1;" : "+f"(x) : "f"(a));
  if (kind == Kind::ffma_immediate)
    asm volatile("fma.rn.f32 %0, %0, 0f3F800001, 0f3F000000;" : "+f"(x));
  if (kind == Kind::hfma2)
    asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(bits) : "r"(a_bits), "r"(b_bits));
  if (kind == Kind::lop3)
    asm volatile("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(bits) : "r"(a_bits), "r"(b_bits));
  if (kind == Kind::fadd_immediate) asm volatile("add.f32 %0, %0, 0f3F000000;" : "+f"(x));
  if (kind == Kind::gelu) x = gelu(x + a);
  if (kind == Kind::gelu_tanh) x = gelu_tanh(x + a);
  if (kind == Kind::ex2) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
}

__device__ unsigned long long descriptor(unsigned address) {
  constexpr unsigned long long swizzle_128 = 1ULL << 62;
  constexpr unsigned long long atom_stride = 64ULL << 32;
  constexpr unsigned long long unused = 1ULL << 16;
  return (address & 0x3ffffU) >> 4 | unused | atom_stride | swizzle_128;
}

#define EIGHT(at)                                                                                 \
  "+f"(sums[at]), "+f"(sums[at + 1]), "+f"(sums[at + 2]), "+f"(sums[at + 3]), "+f"(sums[at + 4]), \
      "+f"(sums[at + 5]), "+f"(sums[at + 6]), "+f"(sums[at + 7])

__device__ __forceinline__ void multiply(float (&sums)[64], unsigned long long a,
                                         unsigned long long b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, "
      "%9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, "
      "%27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, "
      "%45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, "
      "%63}, %64, %65, 1, 1, 1, 0, 0;"
      : EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32), EIGHT(40), EIGHT(48), EIGHT(56)
      : "l"(a), "l"(b));
}

struct Clocks {
  long long multiplying;
  long long issuing;
};

// Results are stored here so that the compiler keeps the arithmetic.
__device__ float kept;

template <Kind kind, int chains>
__global__ void __launch_bounds__(4 * warpgroup, 1)
    run(int products, int loops, Clocks* clocks, float a, float b) {
  extern __shared__ __align__(1024) char stage[];
  for (unsigned at = threadIdx.x; at < stage_bytes / 4; at += blockDim.x)
    reinterpret_cast<unsigned*>(stage)[at] = 0x3c003c00U + (at * 2654435761U >> 20);
  asm volatile("fence.proxy.async;");
  __syncthreads();
  float sum = 0;
  if (threadIdx.x < warpgroup) {
    float sums[64] = {};
    const auto first = static_cast<unsigned>(__cvta_generic_to_shared(stage));
    const long long begin = clock64();
    for (int done = 0; done < products; done += products_in_loop) {
      asm volatile("wgmma.fence.sync.aligned;");
#pragma unroll
      for (unsigned step = 0; step < products_in_loop; ++step)
        multiply(sums, descriptor(first + step % 4 * 32 + step / 4 * 8192),
                 descriptor(first + 16384 + step % 4 * 32));
      asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 1;");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;");
    if (threadIdx.x == 0) clocks[blockIdx.x].multiplying = clock64() - begin;
    for (const float x : sums) sum += x;
  } else {
    float x[most_chains];
    for (int chain = 0; chain < most_chains; ++chain) x[chain] = threadIdx.x * 0.001F + chain;
    __nanosleep(2000);  // until the others run
    const long long begin = clock64();
#pragma unroll 1
    for (int loop = 0; loop < loops; ++loop)
#pragma unroll
      for (int index = 0; index < unrolled; ++index) issue<kind>(x[index % chains], a, b, index);
    if (threadIdx.x == warpgroup) clocks[blockIdx.x].issuing = clock64() - begin;
    for (const float value : x) sum += value;
  }
  if (sum == 123.0F) kept = sum;
}

template <Kind kind, int chains>
void measure(const char* name) {
  constexpr int blocks = 132;
  constexpr int products = 32000;
  constexpr bool is_formula = kind == Kind::gelu || kind == Kind::gelu_tanh;
  constexpr int loops = is_formula ? 600 : kind == Kind::ex2 ? 2000 : 4000;
  Clocks* clocks = nullptr;
  cudaMalloc(&clocks, blocks * sizeof(Clocks));
  const auto kernel = run<kind, chains>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, stage_bytes);
  for (int warps = 1; warps <= 3; ++warps) {
    double each[2] = {};
    double product = 0;
    for (const bool is_beside : {false, true}) {
      for (int repeat = 0; repeat < 2; ++repeat)
        kernel<<<blocks, warpgroup*(1 + warps), stage_bytes>>>(is_beside ? products : 0, loops,
                                                               clocks, 1.0001F, 0.5F);
      std::vector<Clocks> host(blocks);
      cudaMemcpy(host.data(), clocks, blocks * sizeof(Clocks), cudaMemcpyDeviceToHost);
      each[is_beside ? 1 : 0] = static_cast<double>(host[0].issuing) / (loops * unrolled);
      if (is_beside) product = static_cast<double>(host[0].multiplying) / products;
    }
    std::printf(
        "%-18s %2d chains, %d warps a scheduler: every %5.2f clocks alone, %5.2f beside; "
        "m64n128k16 in %.1f\n",
        name, chains, warps, each[0], each[1], product);
  }
  if (const cudaError_t error = cudaGetLastError())
    std::printf("%s: %s\n", name, cudaGetErrorString(error));
  cudaFree(clocks);
}

}  // namespace

int main() {
  measure<Kind::ffma, 16>("ffma");
  measure<Kind::ffma, 4>("ffma");
  measure<Kind::ffma, 2>("ffma");
  measure<Kind::ffma_immediate, 8>("ffma, immediate");
  measure<Kind::ffma_immediate, 2>("ffma, immediate");
  measure<Kind::fadd_immediate, 8>("fadd, immediate");
  measure<Kind::fmnmx, 8>("fmnmx");
  measure<Kind::lop3, 8>("lop3");
  measure<Kind::hfma2, 8>("hfma2");
  measure<Kind::ffma_and_fmnmx, 8>("ffma and fmnmx");
  measure<Kind::ex2, 8>("ex2");
  measure<Kind::gelu, 16>("gelu");
  measure<Kind::gelu, 8>("gelu");
  measure<Kind::gelu, 4>("gelu");
  measure<Kind::gelu, 2>("gelu");
  measure<Kind::gelu_tanh, 16>("gelu_tanh");
  measure<Kind::gelu_tanh, 8>("gelu_tanh");
  measure<Kind::gelu_tanh, 4>("gelu_tanh");
}
