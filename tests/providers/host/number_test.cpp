// SPDX-License-Identifier: Apache-2.0
// Number formats; exhaustive for formats of at most 2^16 codes.
#include "providers/host/number.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random_seed.hpp"

namespace gemmery::host {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr DType narrow_types[] = {DType::float16, DType::bfloat16, DType::float8_e4m3fn,
                                  DType::float8_e5m2};

std::uint32_t code_count(DType dtype) { return 1u << bit_width(dtype); }

// The value by the definition of the format, in long double, independent of `decode`.
long double value_by_definition(DType dtype, std::uint32_t code) {
  const FloatFormat f = float_format(dtype);
  const int width = bit_width(dtype);
  const bool negative = (code >> (width - 1)) & 1;
  const int exponent = static_cast<int>(code >> f.mantissa_bits) & ((1 << f.exponent_bits) - 1);
  const int mantissa = static_cast<int>(code) & ((1 << f.mantissa_bits) - 1);
  const long double fraction = std::ldexp(static_cast<long double>(mantissa), -f.mantissa_bits);
  const long double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - f.bias())
                                              : std::ldexp(1 + fraction, exponent - f.bias());
  return negative ? -magnitude : magnitude;
}

TEST(Number, the_formats_have_their_published_limits) {
  EXPECT_EQ(rounding_of(DType::float16).largest, 65504);
  EXPECT_EQ(rounding_of(DType::float16).smallest, std::ldexp(1.0, -24));
  EXPECT_EQ(rounding_of(DType::bfloat16).largest, std::ldexp(255.0, 120));
  EXPECT_EQ(rounding_of(DType::float8_e4m3fn).largest, 448);
  EXPECT_EQ(rounding_of(DType::float8_e4m3fn).smallest, std::ldexp(1.0, -9));
  EXPECT_EQ(rounding_of(DType::float8_e5m2).largest, 57344);
  EXPECT_EQ(rounding_of(DType::float32).largest,
            static_cast<double>(std::numeric_limits<float>::max()));
  EXPECT_EQ(rounding_of(DType::float32).unit, std::ldexp(1.0, -24));
  EXPECT_EQ(rounding_of(DType::int32).lowest, -2147483648.0);
}

TEST(Number, every_code_decodes_to_its_definition_and_encodes_back) {
  for (const DType dtype : narrow_types) {
    const FloatFormat format = float_format(dtype);
    for (std::uint32_t code = 0; code < code_count(dtype); ++code) {
      const double value = decode(format, code);
      const std::uint32_t magnitude = code & (format.sign_bit() - 1);
      if (magnitude > format.largest()) {
        const bool is_infinite = format.has_infinity && magnitude == format.infinity();
        ASSERT_EQ(std::isinf(value), is_infinite) << name(dtype) << " " << code;
        ASSERT_EQ(std::isnan(value), !is_infinite) << name(dtype) << " " << code;
        if (is_infinite) {
          ASSERT_EQ(encode(format, value), code);
        }
        continue;
      }
      ASSERT_EQ(value, value_by_definition(dtype, code)) << name(dtype) << " " << code;
      ASSERT_EQ(encode(format, value), code) << name(dtype);
    }
  }
}

TEST(Number, load_agrees_with_decode_for_every_code) {
  for (const DType dtype : narrow_types)
    for (std::uint32_t code = 0; code < code_count(dtype); ++code) {
      const double expected = decode(float_format(dtype), code);
      const double loaded = load(dtype, &code, 0);
      if (std::isnan(expected))
        ASSERT_TRUE(std::isnan(loaded)) << name(dtype) << " " << code;
      else
        ASSERT_EQ(std::bit_cast<std::uint64_t>(loaded), std::bit_cast<std::uint64_t>(expected))
            << name(dtype) << " " << code;
    }
}

std::uint32_t encode_fast(DType dtype, float value) {
  switch (dtype) {
    case DType::float16:
      return to_float16(value);
    case DType::bfloat16:
      return to_bfloat16(value);
    case DType::float8_e4m3fn:
      return to_float8_e4m3fn(value);
    default:
      return to_float8_e5m2(value);
  }
}

void expect_same_code(DType dtype, float value) {
  ASSERT_EQ(encode_fast(dtype, value), encode(float_format(dtype), value))
      << name(dtype) << " of " << std::hexfloat << value;
}

// For all neighbours of a format the midpoint, at which rounding changes, and the floats next to
// it.
TEST(Number, floats_round_to_nearest_even_at_every_midpoint) {
  for (const DType dtype : narrow_types) {
    const FloatFormat format = float_format(dtype);
    for (std::uint32_t code = 0; code <= format.largest(); ++code) {
      const double low = decode(format, code);
      // The number after the largest one would have the same distance as the one before it.
      const double high =
          code == format.largest() ? 2 * low - decode(format, code - 1) : decode(format, code + 1);
      const double middle = (low + high) / 2;
      const std::uint32_t even = (code & 1) == 0 ? code : code + 1;
      ASSERT_EQ(encode(format, middle), even) << name(dtype) << " " << code;
      ASSERT_EQ(encode(format, std::nextafter(middle, 0.0)), code) << name(dtype);
      ASSERT_EQ(encode(format, std::nextafter(middle, infinity)), code + 1) << name(dtype);
      ASSERT_EQ(encode(format, -middle), even | format.sign_bit()) << name(dtype);
      const auto narrow_middle = static_cast<float>(middle);
      if (static_cast<double>(narrow_middle) != middle)
        continue;  // bfloat16 subnormals reach below float's
      for (const float value :
           {narrow_middle, std::nextafter(narrow_middle, 0.0f),
            std::nextafter(narrow_middle, std::numeric_limits<float>::infinity())}) {
        expect_same_code(dtype, value);
        expect_same_code(dtype, -value);
      }
    }
  }
}

TEST(Number, the_fast_encoders_agree_with_encode_on_random_floats) {
  std::mt19937 random(static_cast<std::uint32_t>(tests::random_seed()));
  const int count = 2'000'000;
  for (int i = 0; i < count; ++i) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    for (const DType dtype : narrow_types) {
      if (std::isnan(value))
        ASSERT_TRUE(std::isnan(decode(float_format(dtype), encode_fast(dtype, value))));
      else
        expect_same_code(dtype, value);
    }
  }
}

TEST(Number, overflow_follows_torch) {
  const auto e4m3 = float_format(DType::float8_e4m3fn);
  EXPECT_EQ(encode(e4m3, 448), 0x7eu);
  EXPECT_EQ(encode(e4m3, 464), 0x7eu);  // a tie, 448 is the even one
  EXPECT_EQ(encode(e4m3, std::nextafter(464.0, 500.0)), 0x7fu);
  EXPECT_EQ(encode(e4m3, -1000), 0xffu);
  EXPECT_EQ(encode(e4m3, infinity), 0x7fu);
  const auto e5m2 = float_format(DType::float8_e5m2);
  EXPECT_EQ(encode(e5m2, 61439), 0x7bu);
  EXPECT_EQ(encode(e5m2, 61440), 0x7cu);
  const auto f16 = float_format(DType::float16);
  EXPECT_EQ(encode(f16, 65519.99), 0x7bffu);
  EXPECT_EQ(encode(f16, 65520), 0x7c00u);
  EXPECT_EQ(encode(f16, -infinity), 0xfc00u);
}

TEST(Number, float32_encoding_is_the_hardware_conversion) {
  std::mt19937_64 random(tests::random_seed());
  const auto f32 = float_format(DType::float32);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto scale = static_cast<int>(random() % 300) - 160;
    const double value =
        std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())), scale - 63);
    ASSERT_EQ(encode(f32, value), std::bit_cast<std::uint32_t>(static_cast<float>(value))) << value;
  }
}

TEST(Number, a_double_double_is_rounded_once) {
  // 1 + 2^-24 is the tie between 1 and the next float; 2^-80 more decides it, less decides it the
  // other way.
  const double tie = 1 + std::ldexp(1.0, -24);
  const double crumb = std::ldexp(1.0, -80);
  EXPECT_EQ(rounded_to(DType::float32, {tie, 0}), 1);
  EXPECT_EQ(rounded_to(DType::float32, {tie, crumb}), 1 + std::ldexp(1.0, -23));
  EXPECT_EQ(rounded_to(DType::float32, {tie, -crumb}), 1);
  EXPECT_EQ(rounded_to(DType::float32, {-tie, -crumb}), -1 - std::ldexp(1.0, -23));
  EXPECT_EQ(rounded_to(DType::int8, {2.5, 0}), 2);
  EXPECT_EQ(rounded_to(DType::int8, {2.5, crumb}), 3);
  EXPECT_EQ(rounded_to(DType::int8, {3.5, -crumb}), 3);
  EXPECT_EQ(rounded_to(DType::float64, {1, crumb}), 1);
}

TEST(Number, integers_saturate_and_nan_is_zero) {
  EXPECT_EQ(saturate<std::int8_t>(127.5), 127);
  EXPECT_EQ(saturate<std::int8_t>(-1e30), -128);
  EXPECT_EQ(saturate<std::uint8_t>(-0.75), 0);
  EXPECT_EQ(saturate<std::uint8_t>(255.4), 255);
  EXPECT_EQ(saturate<std::int32_t>(infinity), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(saturate<std::int32_t>(-2147483648.0), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(saturate<std::int32_t>(std::nan("")), 0);
  EXPECT_EQ(saturate<std::int8_t>(0.5), 0);
  EXPECT_EQ(saturate<std::int8_t>(1.5), 2);
}

TEST(Number, exact_sums_and_products_lose_nothing) {
  std::mt19937_64 random(tests::random_seed());
  std::uniform_int_distribution<std::int64_t> any(-(std::int64_t{1} << 53), std::int64_t{1} << 53);
  for (int i = 0; i < 100'000; ++i) {
    const auto a = any(random);
    const auto b = any(random);
    const DoubleDouble sum = add_exactly(static_cast<double>(a), static_cast<double>(b));
    ASSERT_EQ(static_cast<std::int64_t>(sum.high) + static_cast<std::int64_t>(sum.low), a + b);
    const DoubleDouble product = multiply_exactly(static_cast<double>(a), static_cast<double>(b));
    ASSERT_EQ(static_cast<__int128>(product.high) + static_cast<__int128>(product.low),
              static_cast<__int128>(a) * b);
  }
}

TEST(Number, nonfinite_double_doubles_keep_their_meaning) {
  EXPECT_EQ(multiply({infinity, 0}, 2).high, infinity);
  EXPECT_EQ(multiply({-2, 0}, infinity).high, -infinity);
  EXPECT_EQ(add({infinity, 0}, {1, 0}).high, infinity);
  EXPECT_TRUE(std::isnan(add({infinity, 0}, {-infinity, 0}).high));
  EXPECT_EQ(rounded_to(DType::float16, {-infinity, 0}), -infinity);
}

}  // namespace
}  // namespace gemmery::host
