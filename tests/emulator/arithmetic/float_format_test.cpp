// SPDX-License-Identifier: Apache-2.0
// The narrow formats: conversion of all patterns to f32 and back, and every rounding compared with
// a search among all numbers of the format.
#include "emulator/arithmetic/float_format.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::array<Rounding, 5> all_roundings = {Rounding::nearest_even, Rounding::toward_zero,
                                                   Rounding::down, Rounding::up,
                                                   Rounding::nearest_away};

bool is_nan_pattern(FloatFormat format, std::uint32_t magnitude) {
  return format.has_infinity ? magnitude > format.infinity() : magnitude == format.nan();
}

// The value of a pattern by the definition of the format.
double defined_value(FloatFormat format, std::uint32_t magnitude) {
  const int exponent = static_cast<int>(magnitude >> format.fraction_bits);
  const double fraction = magnitude & ((1u << format.fraction_bits) - 1);
  const double hidden = exponent == 0 ? 0 : std::ldexp(1.0, format.fraction_bits);
  return std::ldexp(hidden + fraction,
                    (exponent == 0 ? 1 : exponent) - format.bias() - format.fraction_bits);
}

template <FloatFormat format>
void there_and_back() {
  for (std::uint32_t bits = 0; bits < 2 * format.sign(); ++bits) {
    const std::uint32_t magnitude = bits & (format.sign() - 1);
    const double value = widen<format>(bits);
    if (is_nan_pattern(format, magnitude)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_EQ(narrow<format>(value, {}), format.nan());
      continue;
    }
    const bool is_infinite = format.has_infinity && magnitude == format.infinity();
    const double expected = is_infinite ? HUGE_VAL : defined_value(format, magnitude);
    ASSERT_EQ(value, bits == magnitude ? expected : -expected) << bits;
    ASSERT_EQ(std::signbit(value), bits != magnitude);
    for (const Rounding rounding : all_roundings)
      ASSERT_EQ(narrow<format>(value, {.rounding = rounding}), bits);
  }
}

TEST(FloatFormat, every_pattern_widens_to_its_value_and_back) {
  there_and_back<f16_format>();
  there_and_back<bf16_format>();
  there_and_back<tf32_format>();
  there_and_back<e4m3_format>();
  there_and_back<e5m2_format>();
}

// The result of rounding `value`, from its two neighbours among the numbers of the format; the
// number after the largest counts as the start of infinity.
template <FloatFormat format>
std::uint32_t rounded_by_search(double value, Narrowing how) {
  const bool is_negative = std::signbit(value);
  const double size = std::fabs(value);
  std::uint32_t below = 0, above = format.largest() + 1;
  const auto value_at = [](std::uint32_t magnitude) { return defined_value(format, magnitude); };
  while (above - below > 1) {
    const std::uint32_t middle = (below + above) / 2;
    (value_at(middle) <= size ? below : above) = middle;
  }
  const double down = size - value_at(below), up = value_at(above) - size;
  bool takes_above = false;
  switch (how.rounding) {
    case Rounding::nearest_even:
      takes_above = up < down || (up == down && (below & 1) != 0);
      break;
    case Rounding::nearest_away:
      takes_above = up <= down;
      break;
    case Rounding::toward_zero:
      break;
    case Rounding::down:
      takes_above = is_negative && down > 0;
      break;
    case Rounding::up:
      takes_above = !is_negative && down > 0;
      break;
  }
  if (up <= 0) takes_above = true;  // beyond the format altogether
  const std::uint32_t sign = is_negative ? format.sign() : 0;
  const std::uint32_t made = takes_above && down > 0 ? above : below;
  if (made <= format.largest()) return sign | made;
  const bool points_inwards = how.rounding == Rounding::toward_zero ||
                              (how.rounding == Rounding::down && !is_negative) ||
                              (how.rounding == Rounding::up && is_negative);
  if (how.saturates_finite || points_inwards) return sign | format.largest();
  return sign | (format.has_infinity ? format.infinity() : format.nan());
}

template <FloatFormat format>
void round_as_the_search(std::mt19937_64& random) {
  for (int round = 0; round < 20'000; ++round) {
    const auto magnitude = static_cast<std::uint32_t>(random() % (format.largest() + 1));
    double value = defined_value(format, magnitude);
    const double next = defined_value(format, magnitude + 1);
    switch (random() % 5) {
      case 0:
        value = value / 2 + next / 2;
        break;
      case 1:
        value = std::nextafter(value / 2 + next / 2, HUGE_VAL);
        break;
      case 2:
        value = std::nextafter(value / 2 + next / 2, 0);
        break;
      case 3:
        value += (next - value) * static_cast<double>(random() % 1024) / 1024;
        break;
      default:
        value = std::ldexp(value, static_cast<int>(random() % 40) - 20);
        break;
    }
    if (random() % 2 != 0) value = -value;
    for (const Rounding rounding : all_roundings) {
      const Narrowing how{.rounding = rounding, .saturates_finite = random() % 2 != 0};
      ASSERT_EQ(narrow<format>(value, how), rounded_by_search<format>(value, how))
          << std::hexfloat << value << " rounding " << static_cast<int>(rounding);
    }
  }
}

TEST(FloatFormat, rounding_agrees_with_a_search_among_all_numbers) {
  std::mt19937_64 random(tests::random_seed());
  round_as_the_search<f16_format>(random);
  round_as_the_search<bf16_format>(random);
  round_as_the_search<tf32_format>(random);
  round_as_the_search<e4m3_format>(random);
  round_as_the_search<e5m2_format>(random);
}

TEST(FloatFormat, the_quick_conversions_agree_with_the_general_one) {
  std::mt19937_64 random(tests::random_seed());
  std::vector<std::uint32_t> patterns;
  // Every f16 and its neighbourhood, and the same for bf16.
  for (std::uint32_t half = 0; half < 65536; ++half)
    for (const std::uint32_t base : {f32_from_f16(half), half << 16})
      for (const std::uint32_t more : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u})
        patterns.push_back(base + more);
  for (int round = 0; round < 1'000'000; ++round)
    patterns.push_back(static_cast<std::uint32_t>(random()));
  for (const std::uint32_t bits : patterns) {
    const double value = static_cast<double>(std::bit_cast<float>(bits));
    ASSERT_EQ(f16_from_f32(bits), narrow<f16_format>(value, {})) << std::hex << bits;
    ASSERT_EQ(bf16_from_f32(bits), narrow<bf16_format>(value, {})) << std::hex << bits;
  }
  for (std::uint32_t half = 0; half < 65536; ++half) {
    const double value = widen<f16_format>(half);
    const float quick = std::bit_cast<float>(f32_from_f16(half));
    if (value != value)
      ASSERT_EQ(f32_from_f16(half), 0x7fffffffu);
    else
      ASSERT_EQ(static_cast<double>(quick), value);
  }
}

TEST(FloatFormat, nan_keeps_its_upper_bits_between_f64_and_narrower_types) {
  const double nan = std::bit_cast<double>(0xfff8000000000000);
  EXPECT_EQ(narrow_nan<f16_format>(nan), 0xfe00u);
  EXPECT_EQ(narrow_nan<f32_format>(nan), 0xffc00000u);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(widen_nan<f16_format>(0x7d3a)), 0x7ffce80000000000u);
  EXPECT_EQ(tf32_from_f32(std::bit_cast<float>(0xffc00000u), {}), 0xffc00000u);
}

TEST(FloatFormat, overflow_nan_and_relu) {
  EXPECT_EQ(narrow<e4m3_format>(500.0, {.saturates_finite = true}), 0x7eu);
  EXPECT_EQ(narrow<e4m3_format>(-HUGE_VAL, {.saturates_finite = true}), 0xfeu);
  EXPECT_EQ(narrow<e4m3_format>(std::nan(""), {.saturates_finite = true}), 0x7fu);
  EXPECT_EQ(narrow<e5m2_format>(1e9, {}), 0x7cu);
  EXPECT_EQ(narrow<f16_format>(65520.0, {}), 0x7c00u);
  EXPECT_EQ(narrow<f16_format>(65519.9, {}), 0x7bffu);
  EXPECT_EQ(narrow<f16_format>(-3.0, {.is_relu = true}), 0u);
  EXPECT_EQ(narrow<bf16_format>(std::nan(""), {.is_relu = true}), 0x7fffu);
  EXPECT_EQ(tf32_from_f32(1.0f + 0x1p-11f, {.rounding = Rounding::nearest_away}), 0x3f802000u);
  EXPECT_EQ(tf32_from_f32(1.0f + 0x1p-11f, {}), 0x3f800000u);
}

}  // namespace
}  // namespace gemmery::emulator
