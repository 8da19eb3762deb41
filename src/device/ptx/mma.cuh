// SPDX-License-Identifier: Apache-2.0
// mma.sync of sm_80 and later, one instruction per function: the product of two fragments of a
// warp, added to a third. Lane g * 4 + t holds rows g and g + 8, and k (columns of the result) in
// pairs from 2t (PTX ISA, "Matrix fragments for mma").
#pragma once

#include <device/abi/dtype.hpp>

namespace gemmery::device::ptx {

/// .row.col m16n8k16 of float16 or bfloat16, accumulated in float32.
template <bool is_bfloat16>
__device__ __forceinline__ void mma_m16n8k16(float (&sums)[4], const unsigned (&a)[4],
                                             const unsigned (&b)[2]) {
  if constexpr (is_bfloat16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

/// .row.col m16n8k8 of float16 or bfloat16, accumulated in float32.
template <bool is_bfloat16>
__device__ __forceinline__ void mma_m16n8k8(float (&sums)[4], unsigned a_low_rows,
                                            unsigned a_high_rows, unsigned b) {
  if constexpr (is_bfloat16) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a_low_rows), "r"(a_high_rows), "r"(b));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a_low_rows), "r"(a_high_rows), "r"(b));
  }
}

/// The same with k = 16 and float16, accumulated in float16: two per register.
__device__ __forceinline__ void mma_m16n8k16_f16(unsigned (&sums)[2], const unsigned (&a)[4],
                                                 const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, "
      "{%0, %1};"
      : "+r"(sums[0]), "+r"(sums[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// .row.col m16n8k8 of tf32: the upper 19 bits of each float.
__device__ __forceinline__ void mma_m16n8k8_tf32(float (&sums)[4], const unsigned (&a)[4],
                                                 const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#define GEMMERY_MMA_BYTES(types, constraint)                                                \
  asm volatile("mma.sync.aligned.m16n8k32.row.col" types                                    \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"           \
               : "+" constraint(sums[0]), "+" constraint(sums[1]), "+" constraint(sums[2]), \
                 "+" constraint(sums[3])                                                    \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

/// .row.col m16n8k32 of 8-bit integers, each operand signed or unsigned, modulo 2^32 or saturating.
template <bool a_is_signed, bool b_is_signed, bool saturates>
__device__ __forceinline__ void mma_m16n8k32(int (&sums)[4], const unsigned (&a)[4],
                                             const unsigned (&b)[2]) {
  if constexpr (saturates) {
    if constexpr (a_is_signed && b_is_signed)
      GEMMERY_MMA_BYTES(".satfinite.s32.s8.s8.s32", "r");
    else if constexpr (a_is_signed)
      GEMMERY_MMA_BYTES(".satfinite.s32.s8.u8.s32", "r");
    else if constexpr (b_is_signed)
      GEMMERY_MMA_BYTES(".satfinite.s32.u8.s8.s32", "r");
    else
      GEMMERY_MMA_BYTES(".satfinite.s32.u8.u8.s32", "r");
  } else {
    if constexpr (a_is_signed && b_is_signed)
      GEMMERY_MMA_BYTES(".s32.s8.s8.s32", "r");
    else if constexpr (a_is_signed)
      GEMMERY_MMA_BYTES(".s32.s8.u8.s32", "r");
    else if constexpr (b_is_signed)
      GEMMERY_MMA_BYTES(".s32.u8.s8.s32", "r");
    else
      GEMMERY_MMA_BYTES(".s32.u8.u8.s32", "r");
  }
}

/// True if an mma of 8-bit floats is compiled to conversions and mmas of 16 bits (ptxas 13.0).
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
inline constexpr bool widens_f8 = true;
#else
inline constexpr bool widens_f8 = false;
#endif

/// .row.col m16n8k32 of 8-bit floats, accumulated in float32 (sm_89 and later).
template <bool a_is_e4m3, bool b_is_e4m3>
__device__ __forceinline__ void mma_m16n8k32_f8(float (&sums)[4], const unsigned (&a)[4],
                                                const unsigned (&b)[2]) {
  if constexpr (a_is_e4m3 && b_is_e4m3)
    GEMMERY_MMA_BYTES(".f32.e4m3.e4m3.f32", "f");
  else if constexpr (a_is_e4m3)
    GEMMERY_MMA_BYTES(".f32.e4m3.e5m2.f32", "f");
  else if constexpr (b_is_e4m3)
    GEMMERY_MMA_BYTES(".f32.e5m2.e4m3.f32", "f");
  else
    GEMMERY_MMA_BYTES(".f32.e5m2.e5m2.f32", "f");
}

#undef GEMMERY_MMA_BYTES

/// .row.col m8n8k4 of float64: a lane holds one element of each operand and two accumulators.
__device__ __forceinline__ void mma_m8n8k4(double (&sums)[2], double a, double b) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(sums[0]), "+d"(sums[1])
               : "d"(a), "d"(b));
}

/// .row.col m16n8k8 of float64 (sm_90 and later): a lane holds a(g, t), a(g + 8, t), then those of
/// k + 4; b(t), b(t + 4); accumulators of row g and of row g + 8.
__device__ __forceinline__ void mma_m16n8k8(double (&sums)[4], const double (&a)[4],
                                            const double (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

/// The same with k = 16.
__device__ __forceinline__ void mma_m16n8k16(double (&sums)[4], const double (&a)[8],
                                             const double (&b)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, "
      "%9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
      : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]),
        "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
}

}  // namespace gemmery::device::ptx
