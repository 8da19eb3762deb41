// SPDX-License-Identifier: Apache-2.0
// The floating-point formats of tensor-core operands, and their rounding to f16.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "emulator/arithmetic/tensor_core.hpp"

namespace gemmery::emulator::tensor_core {

struct Format {
  int mantissa_bits;
  int bias;
  int unread_bits;              // storage bits below the mantissa (tf32)
  std::uint32_t first_special;  // the smallest magnitude (without sign) that is infinity or NaN
  std::uint32_t infinity;       // its magnitude; 0 if the format has none
};

constexpr Format format_of(MatrixElement element) noexcept {
  switch (element) {
    case MatrixElement::bf16:
      return {7, 127, 0, 0x7f80, 0x7f80};
    case MatrixElement::tf32:
      return {10, 127, 13, 0x3fc00, 0x3fc00};
    case MatrixElement::e4m3:
      return {3, 7, 0, 0x7f, 0};
    case MatrixElement::e5m2:
      return {2, 15, 0, 0x7c, 0x7c};
    default:
      return {10, 15, 0, 0x7c00, 0x7c00};  // f16
  }
}

constexpr std::uint32_t bytes_of_float(MatrixElement element) noexcept {
  switch (element) {
    case MatrixElement::tf32:
      return 4;
    case MatrixElement::e4m3:
    case MatrixElement::e5m2:
      return 1;
    default:
      return 2;
  }
}

inline constexpr std::uint32_t f32_nan = 0x7fffffff;
inline constexpr std::uint32_t f16_nan = 0x7fff;

inline float f32_of_f16(std::uint32_t bits) noexcept {
  const float magnitude = std::bit_cast<float>((bits & 0x7fff) << 13) * 0x1p112f;
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// Rounds to nearest even. Overflow gives infinity; a result that rounds to zero is +0 (recorded).
inline std::uint32_t round_to_f16(double value) noexcept {
  const double magnitude = std::fabs(value);
  if (magnitude >= 65520.0) return value < 0 ? 0xfc00u : 0x7c00u;
  const auto bits = std::bit_cast<std::uint64_t>(magnitude);
  const int exponent = std::max(static_cast<int>(bits >> 52) - 1023, -14);
  // Adding 2^52 ulps rounds to a multiple of the ulp.
  const double at_ulp =
      std::bit_cast<double>(static_cast<std::uint64_t>(exponent - 10 + 52 + 1023) << 52);
  const double rounded = (magnitude + at_ulp) - at_ulp;
  if (rounded == 0) return 0;
  const auto float_bits = std::bit_cast<std::uint32_t>(static_cast<float>(rounded * 0x1p-112));
  const std::uint32_t f16 = float_bits >> 13;
  return f16 | (value < 0 ? 0x8000u : 0u);
}

}  // namespace gemmery::emulator::tensor_core
