// SPDX-License-Identifier: Apache-2.0
// The functions in formulas of ops.def: a few instructions each for float, the compiler's own for
// double. Polynomials were fitted by weighted minimax (tools/fit_epilogue_math.py prints them and
// their errors); the errors on devices are recorded in ops.def.
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

inline constexpr float log2_e = 1.44269504F;
inline constexpr float log2_e_rest = 1.925963033e-8F;  // the rounding error of log2_e
inline constexpr float ln_2 = 0.693147182F;

__device__ __forceinline__ float abs(float x) { return fabsf(x); }
__device__ __forceinline__ double abs(double x) { return fabs(x); }

__device__ __forceinline__ float min(float x, float y) { return ptx::min_nan(x, y); }
__device__ __forceinline__ float max(float x, float y) { return ptx::max_nan(x, y); }
// -0 lies below 0, as it does for float. Written as instructions: NVVM 13.0 turns `x < y ? x : y`,
// where x is a constant 0 and y came from a narrower type, into `y >= 0 ? 0 : y`, which loses the
// sign of -0.
__device__ __forceinline__ double min(double x, double y) {
  return x != x ? x : y != y ? y : ::fmin(x, y);
}
__device__ __forceinline__ double max(double x, double y) {
  return x != x ? x : y != y ? y : ::fmax(x, y);
}

__device__ __forceinline__ float fma(float x, float y, float z) { return __fmaf_rn(x, y, z); }
__device__ __forceinline__ double fma(double x, double y, double z) { return __fma_rn(x, y, z); }

__device__ __forceinline__ float divide(float x, float y) {
  // div.full gives 0 if y is beyond 2^126; a division that IEEE rounds costs four times as much.
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

/// 2^n 2^f with n an even integer: f keeps the bits that x * log2(e) rounds away. The rounding is
/// done by an addition on the FMA pipe: conversions share the special function unit with ex2.
__device__ __forceinline__ float exp(float x) {
  constexpr float to_even = 0x1.8p24F;  // floats from 2^24 to 2^25 are even
  const float marked = __fmaf_rn(fminf(fmaxf(x, -150.0F), 150.0F), log2_e, to_even);
  const float whole = marked - to_even;
  const float part = __fmaf_rn(x, log2_e_rest, __fmaf_rn(x, log2_e, -whole));
  // 2^(n / 2), with n / 2 in the low bits of the sum. Applied twice, so that results near 2^128 and
  // below 2^-126 are right.
  const float half = __int_as_float((__float_as_int(marked) << 23) + 0x3f800000);
  return ptx::ex2_approx_ftz(part) * half * half;
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
  // For infinity, NaN, 0 and negative numbers the hardware's result: itself, NaN, -infinity.
  return x > 0.0F && x < __int_as_float(0x7f800000) ? result : ptx::lg2_approx(x);
}
__device__ __forceinline__ double log(double x) { return ::log(x); }

__device__ __forceinline__ float pow(float x, float y) { return ::powf(x, y); }
__device__ __forceinline__ double pow(double x, double y) { return ::pow(x, y); }

/// 1 / (1 + 2^x). Two operations of the special function unit, which take a warp eight clocks each.
/// While other groups' wgmmas run, any instruction takes nearly three clocks, and the six that
/// could replace the reciprocal cost more, in time and in the board's power (docs/performance.md).
__device__ __forceinline__ float logistic_of_2(float x) {
  return ptx::rcp_approx_ftz(1.0F + ptx::ex2_approx_ftz(x));
}

/// 1 / (1 + e^-x)
__device__ __forceinline__ float logistic(float x) { return logistic_of_2(-log2_e * x); }
__device__ __forceinline__ double logistic(double x) { return 1.0 / (1.0 + ::exp(-x)); }

__device__ __forceinline__ float tanh(float x) {
  constexpr float small[] = {-0.333332986F, 0.133319244F, -0.0537838228F, 0.0207959414F,
                             -0.00589511963F};
  const float square = x * x;
  const float near = __fmaf_rn(polynomial(small, square) * square, x, x);
  const float far = 1.0F - 2.0F * logistic_of_2(2.0F * log2_e * fabsf(x));
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

/// a 2^p(a) for a power that decreases fast: from 13.5 on it is treated as 0, being below 2^-100.
template <int count>
__device__ __forceinline__ float vanishing(const float (&p)[count], float a) {
  const float size = fminf(a, 13.5F);
  return size * ptx::ex2_approx_ftz(polynomial(p, size));
}

/// a (1 - Phi(a)) for a >= 0, where Phi is the normal distribution: the difference of relu and
/// gelu. Its logarithm is nearly a parabola.
__device__ __forceinline__ float gelu_deficit(float a) {
  constexpr float log2_tail[] = {-0.999993443F,  -1.15119779F,     -0.458781838F, -0.0534016341F,
                                 0.00807882659F, -0.000770942075F, 3.3658358e-05F};
  return vanishing(log2_tail, a);
}
/// The same with a relative error of up to 2^-10.8.
__device__ __forceinline__ float brief_gelu_deficit(float a) {
  constexpr float log2_tail[] = {-1.00086796F, -1.14051056F, -0.481105387F, -0.0365513079F,
                                 0.00255139032F};
  return vanishing(log2_tail, a);
}
__device__ __forceinline__ double gelu_deficit(double a) {
  return a < 40.0 ? 0.5 * a * ::erfc(a * 0.70710678118654752440) : 0.0;
}

/// The factor of x in gelu_tanh: (1 + tanh(c)) / 2 = 1 / (1 + e^(-2 c)), c = sqrt(2 / pi) (x +
/// 0.044715 x^3).
__device__ __forceinline__ float gelu_tanh_gate(float x) {
  constexpr float first = -1.5957691216057308 * 1.4426950408889634;
  constexpr float third = -0.07135481627260025 * 1.4426950408889634;
  return logistic_of_2(x * __fmaf_rn(third, x * x, first));
}
__device__ __forceinline__ double gelu_tanh_gate(double x) {
  return logistic(x * (1.5957691216057308 + 0.07135481627260025 * x * x));
}

/// log(1 + e^-a) for a >= 0
__device__ __forceinline__ float log1p_exp_minus(float a) {
  constexpr float log1p_over_power[] = {0.99999994F,   -0.499994934F,  0.333190978F,
                                        -0.248429805F, 0.191060007F,   -0.136632353F,
                                        0.0782258287F, -0.0295051653F, 0.00523267593F};
  const float power = exp(-a);
  return power * polynomial(log1p_over_power, power);
}
__device__ __forceinline__ double log1p_exp_minus(double a) { return ::log1p(::exp(-a)); }

// --- scales of microscaling formats: e8m0's numbers ----------------------------------------------

/// The bits of |x| as if subnormal numbers had more negative exponents: below 0, then.
__device__ __forceinline__ int extended_bits(float x) {
  const int bits = __float_as_int(fabsf(x));
  return bits >= 1 << 23 ? bits : __float_as_int(fabsf(x) * 0x1p24F) - (24 << 23);
}
__device__ __forceinline__ long long extended_bits(double x) {
  const long long bits = __double_as_longlong(fabs(x));
  return bits >= 1LL << 52 ? bits : __double_as_longlong(fabs(x) * 0x1p53) - (53LL << 52);
}
/// 2^exponent within -127 to 127; 2^-127 is subnormal.
__device__ __forceinline__ float e8m0_number(int exponent) {
  const int limited = exponent < -127 ? -127 : exponent > 127 ? 127 : exponent;
  return __int_as_float(limited == -127 ? 1 << 22 : (limited + 127) << 23);
}
/// The scale whose exponent is the difference of those of x and y, plus 1 if `is_ceiling` and x has
/// the larger significand. An infinite x has a larger exponent than numbers, 0 a smaller one.
template <class T>
__device__ __forceinline__ T mx_scale(T x, T y, bool is_ceiling) {
  constexpr int mantissa_bits = sizeof(T) == 4 ? 23 : 52;
  const auto of_x = extended_bits(x);
  const auto of_y = extended_bits(y);
  constexpr auto fraction = (decltype(extended_bits(x)){1} << mantissa_bits) - 1;
  const bool is_above = is_ceiling && (of_x & fraction) > (of_y & fraction);
  int exponent = static_cast<int>(of_x >> mantissa_bits) - static_cast<int>(of_y >> mantissa_bits) +
                 (is_above ? 1 : 0);
  const T infinity = static_cast<T>(__int_as_float(0x7f800000));
  if (y == T(0) || abs(x) == infinity) exponent = 127;
  if (x == T(0) || abs(y) == infinity) exponent = -127;
  return x != x || y != y ? static_cast<T>(__int_as_float(0x7fc00000))
                          : static_cast<T>(e8m0_number(exponent));
}

template <class T>
__device__ __forceinline__ T mx_floor(T x, T y) {
  return mx_scale(x, y, false);
}
template <class T>
__device__ __forceinline__ T mx_rceil(T x, T y) {
  return mx_scale(x, y, true);
}

}  // namespace gemmery::device::math
