// SPDX-License-Identifier: Apache-2.0
// Conversions between element types, one instruction per function, named after the instruction.
// 16-bit types are passed as bits.
#pragma once

namespace gemmery::device::ptx {

/// The bits of a wgmma accumulator. With an ordinary cast the compiler might keep accumulators as
/// integers and move them between wgmma's fence and wgmma.
__device__ inline unsigned mov_b32(float value) {
  unsigned bits;
  asm("mov.b32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

__device__ inline float cvt_f32_f16(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

__device__ inline unsigned short cvt_rn_f16_f32(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

__device__ inline unsigned short cvt_rn_bf16_f32(float value) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

/// Converts two numbers into one register.
__device__ inline unsigned cvt_rn_f16x2_f32(float high, float low) {
  unsigned bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

__device__ inline unsigned cvt_rn_bf16x2_f32(float high, float low) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

/// Saturates: infinities, and what would round to infinity, become the largest number.
__device__ inline unsigned cvt_rn_satfinite_bf16x2_f32(float high, float low) {
  unsigned bits;
  asm("cvt.rn.satfinite.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

__device__ inline float cvt_rn_f32_f64(double value) {
  float result;
  asm("cvt.rn.f32.f64 %0, %1;" : "=f"(result) : "d"(value));
  return result;
}

/// Rounds to nearest, ties away from zero; the result is a float whose lower 13 bits are 0.
__device__ inline unsigned cvt_rna_tf32_f32(float value) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

/// The same, but saturates: infinities become the largest number.
__device__ inline unsigned cvt_rna_satfinite_tf32_f32(float value) {
  unsigned bits;
  asm("cvt.rna.satfinite.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

/// Rounds toward zero: values beyond the type's range become its largest number.
__device__ inline float cvt_rz_f32_f64(double value) {
  float result;
  asm("cvt.rz.f32.f64 %0, %1;" : "=f"(result) : "d"(value));
  return result;
}

__device__ inline unsigned short cvt_rz_f16_f32(float value) {
  unsigned short bits;
  asm("cvt.rz.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

/// Rounds to nearest even; clamps to the range of the result, NaN gives 0 (PTX ISA, cvt).
__device__ inline int cvt_rni_s32_f32(float value) {
  int result;
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(result) : "f"(value));
  return result;
}

__device__ inline unsigned cvt_rni_u32_f32(float value) {
  unsigned result;
  asm("cvt.rni.u32.f32 %0, %1;" : "=r"(result) : "f"(value));
  return result;
}

/// Rounds to nearest even; clamps to the range of the result. NaN gives the top bit alone (PTX ISA,
/// cvt: float to integer, from .f64).
__device__ inline int cvt_rni_s32_f64(double value) {
  int result;
  asm("cvt.rni.s32.f64 %0, %1;" : "=r"(result) : "d"(value));
  return result;
}

__device__ inline unsigned cvt_rni_u32_f64(double value) {
  unsigned result;
  asm("cvt.rni.u32.f64 %0, %1;" : "=r"(result) : "d"(value));
  return result;
}

}  // namespace gemmery::device::ptx
