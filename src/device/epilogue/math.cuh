// SPDX-License-Identifier: Apache-2.0
// The functions that formulas of ops.def call, for float by a few instructions each, for double by
// the compiler's own. Polynomials were fitted by weighted minimax (tools/fit_epilogue_math.py
// prints them and their errors); what the device reaches is recorded beside ops.def.
#pragma once

#include <device/ptx/float_math.cuh>

namespace gemmery::device::math {

/// c[0] + x (c[1] + x (c[2] + …)) in fused steps, the last coefficient first.
template <int count>
__device__ __forceinline__ float polynomial(const float (&c)[count], float x) {
  float sum = c[count - 1];
#pragma unroll
  for (int term = count - 2; term >= 0; --term) sum = __fmaf_rn(sum, x, c[term]);
  return sum;
}

constexpr float log2_e = 1.44269504F;
constexpr float log2_e_rest = 1.925963033e-8F;  // what the float before it lacks
constexpr float ln_2 = 0.693147182F;

__device__ __forceinline__ float abs(float x) { return fabsf(x); }
__device__ __forceinline__ double abs(double x) { return fabs(x); }

__device__ __forceinline__ float min(float x, float y) { return ptx::min_nan(x, y); }
__device__ __forceinline__ float max(float x, float y) { return ptx::max_nan(x, y); }
// -0 lies below 0, as it does for float.
__device__ __forceinline__ double min(double x, double y) {
  return x < y || x != x || (x == y && __double_as_longlong(x) < 0) ? x : y;
}
__device__ __forceinline__ double max(double x, double y) {
  return x > y || x != x || (x == y && __double_as_longlong(y) < 0) ? x : y;
}

__device__ __forceinline__ float fma(float x, float y, float z) { return __fmaf_rn(x, y, z); }
__device__ __forceinline__ double fma(double x, double y, double z) { return __fma_rn(x, y, z); }

__device__ __forceinline__ float divide(float x, float y) {
  // div.full gives 0 where y is beyond 2^126; a division that IEEE rounds costs four times as much.
  return fabsf(y) > 0x1p126F ? ptx::div_full(x * 0x1p-4F, y * 0x1p-4F) : ptx::div_full(x, y);
}
__device__ __forceinline__ double divide(double x, double y) { return x / y; }

__device__ __forceinline__ float floor(float x) { return ptx::cvt_rmi_f32_f32(x); }
__device__ __forceinline__ float round_even(float x) { return ptx::cvt_rni_f32_f32(x); }
__device__ __forceinline__ double floor(double x) { return ::floor(x); }
__device__ __forceinline__ double round_even(double x) { return ::rint(x); }

__device__ __forceinline__ float sqrt(float x) { return ptx::sqrt_rn(x); }
__device__ __forceinline__ float rsqrt(float x) { return ptx::rsqrt_approx(x); }
__device__ __forceinline__ double sqrt(double x) { return ::sqrt(x); }
__device__ __forceinline__ double rsqrt(double x) { return 1.0 / ::sqrt(x); }

__device__ __forceinline__ float exp2(float x) { return ptx::ex2_approx(x); }
__device__ __forceinline__ double exp2(double x) { return ::exp2(x); }

/// 2^n 2^f with n an integer: f keeps the bits that x * log2(e) rounds away.
__device__ __forceinline__ float exp(float x) {
  const float whole = ptx::cvt_rni_f32_f32(fminf(fmaxf(x, -150.0F), 150.0F) * log2_e);
  const float part = __fmaf_rn(x, log2_e_rest, __fmaf_rn(x, log2_e, -whole));
  // In two steps, so that results near 2^128 and below 2^-126 come out right.
  const float half = ptx::cvt_rmi_f32_f32(whole * 0.5F);
  return ptx::ex2_approx(part) * ptx::ex2_approx(half) * ptx::ex2_approx(whole - half);
}
__device__ __forceinline__ double exp(double x) { return ::exp(x); }

/// By the mantissa in [2/3, 4/3): log(1 + f) = f + f^2 p(f).
__device__ __forceinline__ float log(float x) {
  constexpr float p[] = {-0.5F,        0.333332092F,  -0.249997169F, 0.200107485F, -0.166823074F,
                         0.140011445F, -0.121671394F, 0.1400484F,    -0.129490346F};
  const bool is_small = x < 0x1p-126F;
  const float scaled = is_small ? x * 0x1p23F : x;
  const int bits = __float_as_int(scaled);
  const int exponent = (bits - 0x3f2aaaab) & static_cast<int>(0xff800000U);
  const float f = __int_as_float(bits - exponent) - 1.0F;
  const float e = __fmaf_rn(static_cast<float>(exponent), 0x1p-23F, is_small ? -23.0F : 0.0F);
  const float mantissa = __fmaf_rn(polynomial(p, f) * f, f, f);
  const float result = __fmaf_rn(e, ln_2, __fmaf_rn(e, -1.904654e-9F, mantissa));
  // Infinity, NaN, 0 and what is negative take the hardware's answer: itself, NaN, -infinity.
  return x > 0.0F && x < __int_as_float(0x7f800000) ? result : ptx::lg2_approx(x);
}
__device__ __forceinline__ double log(double x) { return ::log(x); }

__device__ __forceinline__ float pow(float x, float y) { return ::powf(x, y); }
__device__ __forceinline__ double pow(double x, double y) { return ::pow(x, y); }

/// 1 / (1 + e^-x)
__device__ __forceinline__ float logistic(float x) {
  return ptx::rcp_approx_ftz(1.0F + ptx::ex2_approx_ftz(-log2_e * x));
}
__device__ __forceinline__ double logistic(double x) { return 1.0 / (1.0 + ::exp(-x)); }

__device__ __forceinline__ float tanh(float x) {
  constexpr float small[] = {-0.333332986F, 0.133319244F, -0.0537838228F, 0.0207959414F,
                             -0.00589511963F};
  const float square = x * x;
  const float near = __fmaf_rn(polynomial(small, square) * square, x, x);
  const float far =
      1.0F - 2.0F * ptx::rcp_approx_ftz(1.0F + ptx::ex2_approx_ftz(2.0F * log2_e * fabsf(x)));
  return fabsf(x) < 0.6F ? near : x != x ? x : copysignf(far, x);
}
__device__ __forceinline__ double tanh(double x) { return ::tanh(x); }

__device__ __forceinline__ float erf(float x) {
  constexpr float small[] = {1.12837911F,    -0.376124471F,  0.112813205F,
                             -0.0267488584F, 0.00496749952F, -0.000586204755F};
  constexpr float log2_erfc[] = {0.000244106661F, -1.6295073F,     -0.913804293F,
                                 -0.156128958F,   0.0361836441F,   -0.00599619374F,
                                 0.000622366322F, -3.00490719e-05F};
  const float size = fminf(fabsf(x), 10.0F);
  const float near = polynomial(small, x * x) * x;
  const float far = 1.0F - ptx::ex2_approx_ftz(polynomial(log2_erfc, size));
  return fabsf(x) < 0.95F ? near : x != x ? x : copysignf(far, x);
}
__device__ __forceinline__ double erf(double x) { return ::erf(x); }

/// a (1 - Phi(a)) for a >= 0, Phi being the normal distribution: what gelu lacks to relu. Its
/// logarithm is nearly a parabola; beyond 14 it is smaller than any bound.
__device__ __forceinline__ float gelu_deficit(float a) {
  constexpr float log2_tail[] = {-0.999993622F,   -1.15119469F,    -0.458799303F,
                                 -0.0533578396F,  0.00802253094F,  -0.000731885666F,
                                 1.91431045e-05F, 2.66621305e-06F, -1.86535445e-07F};
  const float size = fminf(a, 14.0F);
  return size * ptx::ex2_approx_ftz(polynomial(log2_tail, size));
}
__device__ __forceinline__ double gelu_deficit(double a) {
  return a < 40.0 ? 0.5 * a * ::erfc(a * 0.70710678118654752440) : 0.0;
}

/// log(1 + e^-a) for a >= 0
__device__ __forceinline__ float log1p_exp_minus(float a) {
  const float power = exp(-a);
  const float sum = 1.0F + power;
  const float rest = sum - 1.0F;  // what of power is in the sum
  return rest == 0.0F ? power : log(sum) * ptx::div_full(power, rest);
}
__device__ __forceinline__ double log1p_exp_minus(double a) { return ::log1p(::exp(-a)); }

}  // namespace gemmery::device::math
