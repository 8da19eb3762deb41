// SPDX-License-Identifier: Apache-2.0
// Floating-point functions, one instruction per function, named after it. Errors are those of the
// PTX ISA's tables.
#pragma once

namespace gemmery::device::ptx {

/// 2^x within 2 units in the last place.
__device__ inline float ex2_approx(float x) {
  float result;
  asm("ex2.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// The same with results below 2^-126 flushed to 0: three instructions fewer.
__device__ inline float ex2_approx_ftz(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// log2(x): absolute error 2^-22 where x is within (0.5, 2), relative elsewhere.
__device__ inline float lg2_approx(float x) {
  float result;
  asm("lg2.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// 1 / x within 1 unit in the last place.
__device__ inline float rcp_approx(float x) {
  float result;
  asm("rcp.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// The same, with numbers below 2^-126 flushed to 0.
__device__ inline float rcp_approx_ftz(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// 1 / sqrt(x), relative error 2^-22.9.
__device__ inline float rsqrt_approx(float x) {
  float result;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// Rounded to nearest.
__device__ inline float sqrt_rn(float x) {
  float result;
  asm("sqrt.rn.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// x / y within 2 units in the last place over the full range.
__device__ inline float div_full(float x, float y) {
  float result;
  asm("div.full.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y));
  return result;
}

/// NaN if either is NaN.
__device__ inline float min_nan(float x, float y) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y));
  return result;
}

__device__ inline float max_nan(float x, float y) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y));
  return result;
}

/// The nearest integer, ties to even; the largest integer not above.
__device__ inline float cvt_rni_f32_f32(float x) {
  float result;
  asm("cvt.rni.f32.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

__device__ inline float cvt_rmi_f32_f32(float x) {
  float result;
  asm("cvt.rmi.f32.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

}  // namespace gemmery::device::ptx
