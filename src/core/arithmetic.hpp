// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic: quotients and multiples rounded up, and operations that report overflow.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

namespace gemmery {

// value / unit, rounded up; `unit` is positive.
template <std::integral T>
constexpr T divide_up(T value, std::type_identity_t<T> unit) noexcept {
  return value / unit + T{value % unit > 0};
}

// The least multiple of `unit` that is not below `value`; `unit` is positive.
template <std::integral T>
constexpr T round_up(T value, std::type_identity_t<T> unit) noexcept {
  return divide_up(value, unit) * unit;
}

inline std::optional<std::int64_t> checked_add(std::int64_t x, std::int64_t y) noexcept {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(x, y, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<std::int64_t> checked_multiply(std::int64_t x, std::int64_t y) noexcept {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(x, y, &product)) return std::nullopt;
  return product;
}

// |x|; the most negative value, which has no positive counterpart, gives the largest.
constexpr std::int64_t magnitude(std::int64_t x) noexcept {
  if (x == std::numeric_limits<std::int64_t>::min())
    return std::numeric_limits<std::int64_t>::max();
  return x < 0 ? -x : x;
}

}  // namespace gemmery
