// SPDX-License-Identifier: Apache-2.0
// The functions in formulas of ops.def, for float and double on the host. The device has its own
// under the same names.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace gemmery::epilogue::math {

template <class T>
T divide(T x, T y) {
  return x / y;
}
template <class T>
T abs(T x) {
  return std::fabs(x);
}
// IEEE 754-2019's minimum and maximum, which commute: NaN where either is NaN, and -0 below 0.
template <class T>
T min(T x, T y) {
  return x < y || x != x || (x == y && std::signbit(x)) ? x : y;
}
template <class T>
T max(T x, T y) {
  return x > y || x != x || (x == y && std::signbit(y)) ? x : y;
}
template <class T>
T fma(T x, T y, T z) {
  return std::fma(x, y, z);
}
template <class T>
T exp(T x) {
  return std::exp(x);
}
template <class T>
T exp2(T x) {
  return std::exp2(x);
}
template <class T>
T log(T x) {
  return std::log(x);
}
template <class T>
T sqrt(T x) {
  return std::sqrt(x);
}
template <class T>
T rsqrt(T x) {
  return T(1) / std::sqrt(x);
}
template <class T>
T pow(T x, T y) {
  return std::pow(x, y);
}
template <class T>
T erf(T x) {
  return std::erf(x);
}
template <class T>
T tanh(T x) {
  return std::tanh(x);
}
template <class T>
T floor(T x) {
  return std::floor(x);
}
// To the nearest integer, ties to even: the rounding mode that all code runs in.
template <class T>
T round_even(T x) {
  return std::nearbyint(x);
}

// 1 / (1 + e^-x)
template <class T>
T logistic(T x) {
  return T(1) / (T(1) + std::exp(-x));
}
// a (1 - Phi(a)) for a >= 0, where Phi is the normal distribution: the difference of relu and gelu.
// Beyond 40 it is 0 in every type.
template <class T>
T gelu_deficit(T a) {
  return a < T(40) ? T(0.5) * a * std::erfc(a * T(0.70710678118654752)) : T(0);
}
// The factor of x in gelu_tanh: (1 + tanh(c)) / 2 = 1 / (1 + e^(-2 c)) with c = sqrt(2 / pi) (x +
// 0.044715 x^3).
template <class T>
T gelu_tanh_gate(T x) {
  return logistic(x * (T(1.5957691216057308) + T(0.07135481627260025) * x * x));
}
// log(1 + e^-x) for x >= 0
template <class T>
T log1p_exp_minus(T x) {
  return std::log1p(std::exp(-x));
}

// --- scales of microscaling formats, from a block's largest magnitude x and the largest number y
// of its elements' type. They are e8m0's numbers: 2^-127 to 2^127, NaN where an operand is NaN.
// Exact.

// 2^exponent within e8m0.
template <class T>
T mx_scale_of(T exponent) {
  return std::ldexp(T(1), static_cast<int>(std::clamp(exponent, T(-127), T(127))));
}
// The power of two below x, by that below y.
template <class T>
T mx_floor(T x, T y) {
  if (x != x || y != y) return std::numeric_limits<T>::quiet_NaN();
  if (x == 0 || std::isinf(y)) return mx_scale_of(T(-127));
  if (y == 0 || std::isinf(x)) return mx_scale_of(T(127));
  return mx_scale_of(std::logb(x) - std::logb(y));
}
// The least power of two p for which p |y| >= |x|.
template <class T>
T mx_rceil(T x, T y) {
  if (x != x || y != y || x == 0 || y == 0 || std::isinf(x) || std::isinf(y)) return mx_floor(x, y);
  int of_x = 0, of_y = 0;
  const bool is_above = std::fabs(std::frexp(x, &of_x)) > std::fabs(std::frexp(y, &of_y));
  return mx_scale_of(static_cast<T>(of_x - of_y + (is_above ? 1 : 0)));
}

}  // namespace gemmery::epilogue::math
