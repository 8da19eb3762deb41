// SPDX-License-Identifier: Apache-2.0
// Numbers of every dtype: exact decoding, and encoding with one rounding of the exact value to
// nearest even. Out of range, in every kernel of the host and in the oracle:
//
//   float64 float32 float16 bfloat16 float8_e5m2   overflow gives infinity
//   float8_e4m3fn, which has no infinity           overflow gives NaN, as in torch: values up to
//                                                  464 round to 448, larger ones become NaN
//   float6_e2m3fn float6_e3m2fn float4_e2m1fn,     saturate; NaN gives the largest number, without
//   which have no infinity and no NaN              its sign (as CUDA's cvt.rn.satfinite)
//   float8_e8m0fnu, powers of two without a sign   the sign is dropped; 2^-127 to 2^127, for
//                                                  infinity too; NaN gives NaN
//   integers                                       saturate; NaN gives 0 (as CUDA's cvt.rni.sat)
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include <gemmery/dtype.hpp>

namespace gemmery::number {

// An encoding with sign, exponent and mantissa. Bias and subnormals are IEEE's.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;    // without it ("fn"), only the all-ones code is special: NaN
  bool has_nan = true;  // without it, every code is a number

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr int smallest_exponent() const { return 1 - bias(); }  // of a normal number
  constexpr std::uint32_t exponent_mask() const { return (1u << exponent_bits) - 1; }
  constexpr std::uint32_t sign_bit() const { return 1u << (exponent_bits + mantissa_bits); }
  constexpr std::uint32_t infinity() const { return exponent_mask() << mantissa_bits; }
  constexpr std::uint32_t nan() const {
    if (!has_nan) return largest();
    return has_infinity ? infinity() | (1u << (mantissa_bits - 1)) : sign_bit() - 1;
  }
  // The largest code (without sign) that is a number.
  constexpr std::uint32_t largest() const {
    if (!has_nan) return sign_bit() - 1;
    return (has_infinity ? infinity() : nan()) - 1;
  }
  // What values beyond the largest number become.
  constexpr std::uint32_t overflow() const { return has_nan ? largest() + 1 : largest(); }
};

// Not of float8_e8m0fnu, whose codes have no sign (decode_e8m0).
constexpr FloatFormat float_format(DType dtype) {
  const DTypeFacts& known = facts(dtype);
  return {known.exponent_bits, known.mantissa_bits, !known.name.ends_with("fn"), !is_packed(dtype)};
}

// 2^exponent, for normal results.
constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// The value of a code; formats of at most 32 bits.
constexpr double decode(FloatFormat format, std::uint32_t code) {
  const std::uint32_t magnitude = code & (format.sign_bit() - 1);
  const double sign = (code & format.sign_bit()) != 0 ? -1.0 : 1.0;
  const std::uint32_t exponent = magnitude >> format.mantissa_bits;
  const std::uint32_t mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
  if (format.has_infinity && exponent == format.exponent_mask())
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  if (!format.has_infinity && format.has_nan && magnitude == format.nan())
    return std::numeric_limits<double>::quiet_NaN();
  const int unit_exponent = format.smallest_exponent() - format.mantissa_bits;
  if (exponent == 0) return sign * mantissa * power_of_two(unit_exponent);
  const double significand = mantissa | (1u << format.mantissa_bits);
  return sign * significand * power_of_two(unit_exponent + static_cast<int>(exponent) - 1);
}

// The code nearest to `value`, ties to even; formats of at most 32 bits.
constexpr std::uint32_t encode(FloatFormat format, double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint32_t sign = (bits >> 63) != 0 ? format.sign_bit() : 0;
  const int biased = static_cast<int>((bits >> 52) & 0x7ff);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  if (biased == 0x7ff) {
    if (fraction != 0) return format.has_nan ? sign | format.nan() : format.nan();
    return sign | format.overflow();
  }
  if (biased == 0) return sign;  // below half the smallest subnormal of every narrower format
  const int exponent = biased - 1023;
  const int floor_exponent = std::max(exponent, format.smallest_exponent());
  const int dropped = 52 - format.mantissa_bits + (floor_exponent - exponent);
  if (dropped > 54) return sign;
  const std::uint64_t significand = fraction | (std::uint64_t{1} << 52);
  const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  std::uint64_t kept = significand >> dropped;
  const std::uint64_t rest = significand & (2 * half - 1);
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  // The implicit bit of `kept` adds one to the exponent field, as does a carry out of the mantissa.
  const auto above = static_cast<std::uint64_t>(floor_exponent - format.smallest_exponent());
  const std::uint64_t code = kept + (above << format.mantissa_bits);
  return sign | (code > format.largest() ? format.overflow() : static_cast<std::uint32_t>(code));
}

// --- float8_e8m0fnu: code e is 2^(e - 127), code 255 NaN -----------------------------------------

inline constexpr std::uint32_t e8m0_nan = 0xff;

constexpr double decode_e8m0(std::uint32_t code) {
  return code == e8m0_nan ? std::numeric_limits<double>::quiet_NaN()
                          : power_of_two(static_cast<int>(code) - 127);
}

// How a magnitude between two powers of two becomes one of them.
enum class PowerRounding : std::uint8_t {
  nearest,  // a tie, 1.5 * 2^e, goes up
  up,       // RCEIL of block scales
  down      // FLOOR
};

// The sign is dropped; magnitudes beyond 2^127, infinity too, give 2^127, and those below 2^-127,
// zero too, 2^-127.
constexpr std::uint32_t encode_e8m0(double value, PowerRounding rounding = PowerRounding::nearest) {
  const std::uint64_t magnitude = std::bit_cast<std::uint64_t>(value) & ~(std::uint64_t{1} << 63);
  constexpr std::uint64_t infinity = std::uint64_t{0x7ff} << 52;
  if (magnitude > infinity) return e8m0_nan;
  constexpr std::uint64_t half = std::uint64_t{1} << 51;
  const std::uint64_t added = rounding == PowerRounding::nearest ? half
                              : rounding == PowerRounding::up    ? 2 * half - 1
                                                                 : 0;
  const auto exponent = static_cast<int>((magnitude + added) >> 52) - 1023;
  return static_cast<std::uint32_t>(std::clamp(exponent, -127, 127) + 127);
}

// An unevaluated sum high + low, |low| at most half a unit of high: about 106 bits.
struct DoubleDouble {
  double high = 0;
  double low = 0;
};

// a + b exactly (Knuth).
constexpr DoubleDouble add_exactly(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

// a · b exactly, unless the product overflows or falls below 2^-969.
inline DoubleDouble multiply_exactly(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

// For a sum whose high part may be infinite or NaN: its low part is meaningless then.
inline DoubleDouble drop_low_of_nonfinite(DoubleDouble x) {
  return std::isfinite(x.high) && std::isfinite(x.low) ? x : DoubleDouble{x.high, 0};
}

// Relative error at most 2^-103 of |a| + |b| (the sloppy variant, which is enough for bounds).
inline DoubleDouble add(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble high = drop_low_of_nonfinite(add_exactly(a.high, b.high));
  return drop_low_of_nonfinite(add_exactly(high.high, high.low + (a.low + b.low)));
}

inline DoubleDouble multiply(DoubleDouble a, double b) {
  const DoubleDouble high = drop_low_of_nonfinite(multiply_exactly(a.high, b));
  if (!std::isfinite(high.high)) return high;  // 0 · infinity of the low parts would make it NaN
  return drop_low_of_nonfinite(add_exactly(high.high, high.low + a.low * b));
}

// high + low rounded to odd: one more rounding of the result to at most 51 bits gives the rounding
// of the exact sum.
inline double round_to_odd(DoubleDouble x) {
  if (x.low == 0 || !std::isfinite(x.high)) return x.high;
  const auto bits = std::bit_cast<std::uint64_t>(x.high);
  if ((bits & 1) != 0) return x.high;
  const bool away_from_zero = (x.low > 0) == (x.high > 0);
  return std::bit_cast<double>(away_from_zero ? bits + 1 : bits - 1);
}

template <class Integer>
Integer saturate(double value) {
  using Limits = std::numeric_limits<Integer>;
  if (std::isnan(value)) return 0;
  const double rounded = std::nearbyint(value);
  if (rounded <= static_cast<double>(Limits::min())) return Limits::min();
  if (rounded >= static_cast<double>(Limits::max())) return Limits::max();
  return static_cast<Integer>(rounded);
}

// The value of a code, and the code of the nearest value, of types of at most 8 bits; codes are in
// the lowest bits.
double decode(DType dtype, std::uint32_t code);
std::uint32_t encode(DType dtype, double value);

// Element `index` of an array of a dtype, as a double (exact). The array begins with the first bit
// of a byte.
double load(DType dtype, const void* data, std::int64_t index);

// Rounds the exact value once and stores it. Elements of packed types share bytes: threads must not
// store two of one byte at once.
void store(DType dtype, void* data, std::int64_t index, DoubleDouble value);

// The double that `value` becomes when it is stored as `dtype` and loaded again.
double rounded_to(DType dtype, DoubleDouble value);

// The types of results, of C and of an epilogue's operands and casts: all but scales (e8m0) and
// packed types.
constexpr bool is_host_number(DType dtype) {
  return dtype != DType::float8_e8m0fnu && !is_packed(dtype);
}

// Facts of rounding to a dtype.
struct Rounding {
  double unit;      // |rounded − x| ≤ unit·|x| for normal results; 0 for integers
  double smallest;  // smallest positive number: 1 for integers
  double largest;   // largest finite number
  double lowest;    // −largest, or the integer's minimum
};
Rounding rounding_of(DType dtype);

// --- single floats, fast: branches that a compiler turns into vector code ---

// The code of the nearest number, equal to encode(format, double(value)) except for the payload of
// NaN.
template <int exponent_bits, int mantissa_bits, bool has_infinity>
inline std::uint32_t encode_float(float value) {
  constexpr FloatFormat format{exponent_bits, mantissa_bits, has_infinity};
  constexpr int dropped = 23 - mantissa_bits;
  constexpr std::uint32_t smallest_normal =
      static_cast<std::uint32_t>(format.smallest_exponent() + 127) << 23;
  constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - format.bias()) << 23;
  // Adding this makes the unit in the last place of the float equal to the format's smallest
  // subnormal, so that the hardware rounds for us.
  constexpr auto subnormal_shift =
      static_cast<std::uint32_t>(format.smallest_exponent() + dropped + 127) << 23;
  constexpr std::uint32_t too_large = format.largest() + 1;

  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t sign = (bits >> 31) << (exponent_bits + mantissa_bits);
  const std::uint32_t tie_to_even = (1u << (dropped - 1)) - 1 + ((magnitude >> dropped) & 1);
  const std::uint32_t normal = (magnitude - rebias + tie_to_even) >> dropped;
  const float shifted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(subnormal_shift);
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - subnormal_shift;
  std::uint32_t code = magnitude < smallest_normal ? subnormal : normal;
  code = code > too_large ? too_large : code;
  code = magnitude >= 0x7f800000u ? too_large : code;
  code = magnitude > 0x7f800000u ? format.nan() : code;
  return sign | code;
}

inline std::uint16_t to_float16(float value) {
  return static_cast<std::uint16_t>(encode_float<5, 10, true>(value));
}
inline std::uint16_t to_bfloat16(float value) {
  return static_cast<std::uint16_t>(encode_float<8, 7, true>(value));
}
inline std::uint8_t to_float8_e4m3fn(float value) {
  return static_cast<std::uint8_t>(encode_float<4, 3, false>(value));
}
inline std::uint8_t to_float8_e5m2(float value) {
  return static_cast<std::uint8_t>(encode_float<5, 2, true>(value));
}

inline float from_float16(std::uint16_t code) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(code & 0x7fffu) << 13;
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x8000u) << 16;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;  // subnormals too
  const std::uint32_t finite = std::bit_cast<std::uint32_t>(scaled);
  const std::uint32_t value = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : finite;
  return std::bit_cast<float>(sign | value);
}
inline float from_bfloat16(std::uint16_t code) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
}
float from_float8_e4m3fn(std::uint8_t code);
inline float from_float8_e5m2(std::uint8_t code) {
  return from_float16(static_cast<std::uint16_t>(code << 8));
}

}  // namespace gemmery::number
