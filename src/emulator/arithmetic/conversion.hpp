// SPDX-License-Identifier: Apache-2.0
// Conversions between integers and floating point, and to integral values.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>

#include "emulator/arithmetic/rounding.hpp"

namespace gemmery::emulator {

// Rounds for .rni .rzi .rmi .rpi. The host must be in round-to-nearest mode, as everywhere in this
// library.
inline double round_to_integral(double value, Rounding rounding) noexcept {
  switch (rounding) {
    case Rounding::toward_zero:
      return std::trunc(value);
    case Rounding::down:
      return std::floor(value);
    case Rounding::up:
      return std::ceil(value);
    case Rounding::nearest_away:
      return std::round(value);
    case Rounding::nearest_even:
      break;
  }
  return std::nearbyint(value);
}

// Values out of range saturate. `nan` is the result for NaN (PTX ISA, cvt: zero, or the sign bit
// alone if f64 or a 64-bit integer takes part).
template <std::integral To>
inline To to_integer(double value, Rounding rounding, To nan) noexcept {
  if (value != value) return nan;
  constexpr double end = static_cast<double>(std::numeric_limits<To>::max() / 2 + 1) * 2;
  constexpr double lowest = static_cast<double>(std::numeric_limits<To>::min());
  const double integral = round_to_integral(value, rounding);
  if (integral >= end) return std::numeric_limits<To>::max();
  if (integral <= lowest) return std::numeric_limits<To>::min();
  return static_cast<To>(integral);
}

// A double from which any format of less than 52 bits can be rounded in every mode: the integer
// itself, or the integer rounded to odd.
template <std::integral From>
inline double to_odd_double(From value) noexcept {
  if constexpr (sizeof(From) < 8) {
    return static_cast<double>(value);
  } else {
    const bool is_negative = value < 0;
    const std::uint64_t bits = static_cast<std::uint64_t>(value);
    const std::uint64_t magnitude = is_negative ? 0 - bits : bits;
    constexpr int spare = 11;
    const std::uint64_t lost = magnitude & ((1u << spare) - 1);
    double made = static_cast<double>(magnitude);
    if (magnitude >> 53 != 0)
      made = static_cast<double>(magnitude >> spare | static_cast<std::uint64_t>(lost != 0)) *
             (1 << spare);
    return is_negative ? -made : made;
  }
}

template <std::integral From>
inline double to_f64(From value, Rounding rounding) noexcept {
  if constexpr (sizeof(From) < 8) return static_cast<double>(value);
  if (rounding == Rounding::nearest_even) return static_cast<double>(value);
  return round_to<double>(static_cast<Quad>(value), rounding);
}
template <std::integral From>
inline float to_f32(From value, Rounding rounding) noexcept {
  return round_to<float>(to_odd_double(value), rounding);
}

}  // namespace gemmery::emulator
