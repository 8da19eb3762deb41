// SPDX-License-Identifier: Apache-2.0
// add, mul, div and sqrt of f32 and f64 in every rounding mode, and the modifiers that follow them
// (.ftz, .sat, .relu). f32 is computed in double rounded to odd, so no result depends on the host's
// rounding mode. f64 is computed in 113 bits unless it rounds to nearest.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "emulator/arithmetic/rounding.hpp"

namespace gemmery::emulator {

inline constexpr std::uint32_t f32_nan = 0x7fffffff;          // of all f32 operations
inline constexpr std::uint64_t f64_nan = 0xfff8000000000000;  // of operations on numbers

// --- modifiers -----------------------------------------------------------------------------------

inline float canonical(float value) noexcept {
  return value == value ? value : std::bit_cast<float>(f32_nan);
}
inline double quiet(double value) noexcept {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) | std::uint64_t{1} << 51);
}
// .ftz: a subnormal becomes a zero of the same sign.
inline float flush(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits);
}
// .sat: clamps to [0, 1]; NaN and -0 become +0.
template <class Float>
inline Float saturate(Float value) noexcept {
  return value > 0 ? (value < 1 ? value : Float{1}) : Float{0};
}

// --- f32 -----------------------------------------------------------------------------------------

inline float add(float a, float b, Rounding rounding) noexcept {
  const double wide_a = a, wide_b = b;
  const double sum = zero_sum(wide_a, wide_b, sum_to_odd(wide_a, wide_b), rounding);
  return canonical(round_to<float>(sum, rounding));
}
inline float multiply(float a, float b, Rounding rounding) noexcept {
  return canonical(round_to<float>(static_cast<double>(a) * static_cast<double>(b), rounding));
}
inline float fma(float a, float b, float c, Rounding rounding) noexcept {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double wide_c = c;
  const double sum = zero_sum(product, wide_c, sum_to_odd(product, wide_c), rounding);
  return canonical(round_to<float>(sum, rounding));
}
// A quotient of two f32, or a root of one, that is not itself a number of 25 bits differs from
// every such number by at least 2^-49 (relative). Rounding double's 53 bits again is therefore
// exact in every mode.
inline float divide(float a, float b, Rounding rounding) noexcept {
  return canonical(round_to<float>(static_cast<double>(a) / static_cast<double>(b), rounding));
}
inline float square_root(float a, Rounding rounding) noexcept {
  return canonical(round_to<float>(std::sqrt(static_cast<double>(a)), rounding));
}

// --- f64 -----------------------------------------------------------------------------------------

double add(double a, double b, Rounding rounding) noexcept;
double multiply(double a, double b, Rounding rounding) noexcept;
double fma(double a, double b, double c, Rounding rounding) noexcept;
double divide(double a, double b, Rounding rounding) noexcept;
double square_root(double a, Rounding rounding) noexcept;

// --- smallest and largest ------------------------------------------------------------------------

enum class Extreme : std::uint8_t { minimum, maximum };

// Returns `nan` if both are NaN, or if one is and `propagates_nan`; else the number. -0 < +0.
template <class Float>
inline Float extreme(Float a, Float b, Extreme which, bool propagates_nan, Float nan) noexcept {
  const bool is_nan_a = a != a, is_nan_b = b != b;
  if ((is_nan_a && is_nan_b) || (propagates_nan && (is_nan_a || is_nan_b))) return nan;
  if (is_nan_a) return b;
  if (is_nan_b) return a;
  const bool a_is_smaller = a < b || (a == b && std::signbit(a));
  return a_is_smaller == (which == Extreme::minimum) ? a : b;
}

}  // namespace gemmery::emulator
