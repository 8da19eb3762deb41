// SPDX-License-Identifier: Apache-2.0
// Conversions of the formats below f32 (f16, bf16, tf32 and both 8-bit floats) to and from bit
// patterns. A NaN result is the hardware's: all ones without a sign.
#pragma once

#include <bit>
#include <cstdint>

#include "emulator/arithmetic/rounding.hpp"

namespace gemmery::emulator {

// A format with IEEE's bias. Without infinity (e4m3) only the pattern of all ones is NaN, and the
// other patterns with that exponent are numbers.
struct FloatFormat {
  int exponent_bits;
  int fraction_bits;
  bool has_infinity = true;

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr std::uint32_t nan() const { return (1u << (exponent_bits + fraction_bits)) - 1; }
  constexpr std::uint32_t infinity() const { return ((1u << exponent_bits) - 1) << fraction_bits; }
  constexpr std::uint32_t largest() const { return has_infinity ? infinity() - 1 : nan() - 1; }
  constexpr std::uint32_t sign() const { return 1u << (exponent_bits + fraction_bits); }
};
inline constexpr FloatFormat f16_format{5, 10};
inline constexpr FloatFormat f32_format{8, 23};
inline constexpr FloatFormat bf16_format{8, 7};
inline constexpr FloatFormat tf32_format{8, 10};
inline constexpr FloatFormat e5m2_format{5, 2};
inline constexpr FloatFormat e4m3_format{4, 3, false};

// How a number is converted to a narrower format.
struct Narrowing {
  Rounding rounding = Rounding::nearest_even;
  bool saturates_finite = false;  // .satfinite: too large, or infinite, becomes the largest number
  bool is_relu = false;           // .relu: below zero becomes +0, NaN stays
};

// The result of an overflow: the largest number or infinity, depending on the rounding mode.
constexpr std::uint32_t overflow(FloatFormat format, Narrowing how, bool is_negative) noexcept {
  const bool stays_finite = how.saturates_finite || how.rounding == Rounding::toward_zero ||
                            (how.rounding == Rounding::down && !is_negative) ||
                            (how.rounding == Rounding::up && is_negative);
  if (stays_finite) return format.largest();
  return format.has_infinity ? format.infinity() : format.nan();
}

// Converts a double (rounded to odd if it stands for a wider number) to the bits of `format`.
template <FloatFormat format>
inline std::uint32_t narrow(double value, Narrowing how) noexcept {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const bool is_negative = (bits >> 63) != 0;
  const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
  constexpr std::uint64_t infinity = std::uint64_t{0x7ff} << 52;
  if (magnitude > infinity) return format.nan();
  if (is_negative && how.is_relu) return 0;
  const std::uint32_t sign = is_negative ? format.sign() : 0;
  if (magnitude == infinity)
    return sign | (how.saturates_finite ? format.largest() : format.infinity());
  if (magnitude == 0) return sign;

  constexpr int lowest = 1 - format.bias();  // exponent of the smallest normal number
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  const std::uint64_t significand =
      (magnitude & ((std::uint64_t{1} << 52) - 1)) | (std::uint64_t{exponent > -1023} << 52);
  const int lost = 52 - format.fraction_bits + (exponent < lowest ? lowest - exponent : 0);
  const int shift = lost < 63 ? lost : 63;
  const std::uint64_t rest = significand & ((std::uint64_t{1} << shift) - 1);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  std::uint64_t kept = significand >> shift;
  switch (how.rounding) {
    case Rounding::nearest_even:
      kept += rest > half || (rest == half && (kept & 1) != 0);
      break;
    case Rounding::nearest_away:
      kept += rest >= half;
      break;
    case Rounding::toward_zero:
      break;
    case Rounding::down:
      kept += rest != 0 && is_negative;
      break;
    case Rounding::up:
      kept += rest != 0 && !is_negative;
      break;
  }
  // A significand that carries over increments the exponent.
  const auto steps = static_cast<std::uint64_t>(exponent > lowest ? exponent - lowest : 0);
  const std::uint64_t made = (steps << format.fraction_bits) + kept;
  return sign | (made > format.largest() ? overflow(format, how, is_negative)
                                         : static_cast<std::uint32_t>(made));
}

// Converts exactly. Every NaN becomes the double of all ones without a sign.
template <FloatFormat format>
inline double widen(std::uint32_t bits) noexcept {
  const std::uint32_t magnitude = bits & (format.sign() - 1);
  const std::uint64_t sign = static_cast<std::uint64_t>((bits & format.sign()) != 0) << 63;
  const std::uint32_t exponent = magnitude >> format.fraction_bits;
  const bool is_nan =
      format.has_infinity ? magnitude > format.infinity() : magnitude == format.nan();
  if (is_nan) return std::bit_cast<double>(~std::uint64_t{0} >> 1);
  if (format.has_infinity && magnitude == format.infinity())
    return std::bit_cast<double>(sign | std::uint64_t{0x7ff} << 52);
  if (exponent == 0) {
    constexpr int unit_exponent = 1 - format.bias() - format.fraction_bits;
    const double unit =
        std::bit_cast<double>(static_cast<std::uint64_t>(1023 + unit_exponent) << 52);
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(magnitude * unit) | sign);
  }
  const std::uint64_t rebased =
      (static_cast<std::uint64_t>(magnitude) << (52 - format.fraction_bits)) +
      (static_cast<std::uint64_t>(1023 - format.bias()) << 52);
  return std::bit_cast<double>(rebased | sign);
}

// --- the hot ones, written so that they vectorise -----------------------------------------------

inline std::uint32_t bf16_from_f32(std::uint32_t bits) noexcept {
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded;
}
// A shift, as in hardware: payloads of NaN survive.
inline std::uint32_t f32_from_bf16(std::uint32_t bits) noexcept { return bits << 16; }

// Branch-free selection: compilers move arithmetic under branches, which prevents vectorisation.
inline std::uint32_t choose(bool is_first, std::uint32_t first, std::uint32_t second) noexcept {
  const std::uint32_t mask = 0 - static_cast<std::uint32_t>(is_first);
  return (first & mask) | (second & ~mask);
}

inline std::uint32_t f16_from_f32(std::uint32_t bits) noexcept {
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // The last bit of 0.5f has the weight of the last bit of a subnormal f16, so the addition rounds.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  const std::uint32_t finite = choose(magnitude < 0x38800000, subnormal, normal);
  const std::uint32_t number = choose(magnitude >= 0x47800000, 0x7c00, finite) | sign;
  return choose(magnitude > 0x7f800000, 0x7fff, number);
}
inline std::uint32_t f32_from_f16(std::uint32_t bits) noexcept {
  const std::uint32_t magnitude = bits & 0x7fff;
  const std::uint32_t sign = (bits & 0x8000) << 16;
  const std::uint32_t normal = (magnitude << 13) + (112u << 23);
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(
      static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f);
  const std::uint32_t finite = choose(magnitude < 0x400, subnormal, normal);
  const std::uint32_t number = choose(magnitude == 0x7c00, 0x7f800000, finite) | sign;
  return choose(magnitude > 0x7c00, 0x7fffffff, number);
}

// Conversions between f64 and narrower types keep a NaN's sign and the upper bits of its fraction,
// and make it quiet.
template <FloatFormat format>
inline std::uint32_t narrow_nan(double nan) noexcept {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(nan);
  const std::uint64_t fraction = (bits & ((std::uint64_t{1} << 52) - 1)) | std::uint64_t{1} << 51;
  return ((bits >> 63) != 0 ? format.sign() : 0) | format.infinity() |
         static_cast<std::uint32_t>(fraction >> (52 - format.fraction_bits));
}
template <FloatFormat format>
inline double widen_nan(std::uint32_t bits) noexcept {
  const std::uint64_t fraction = bits & ((1u << format.fraction_bits) - 1);
  const std::uint64_t sign = static_cast<std::uint64_t>((bits & format.sign()) != 0) << 63;
  return std::bit_cast<double>(sign | std::uint64_t{0xfff} << 51 |
                               fraction << (52 - format.fraction_bits));
}

// An f32 whose 13 low bits are zero. A NaN keeps its upper bits.
inline std::uint32_t tf32_from_f32(float value, Narrowing how) noexcept {
  if (value != value)
    return how.is_relu ? 0x7fffffff : std::bit_cast<std::uint32_t>(value) & ~std::uint32_t{0x1fff};
  return narrow<tf32_format>(static_cast<double>(value), how) << 13;
}

}  // namespace gemmery::emulator
