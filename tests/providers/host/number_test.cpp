// SPDX-License-Identifier: Apache-2.0
// Number formats; exhaustive for formats of at most 2^16 codes.
#include "providers/host/number.hpp"

#include <array>
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

// --- codes of at most 8 bits, by the tables of their formats -------------------------------------

constexpr DType packed_floats[] = {DType::float6_e2m3fn, DType::float6_e3m2fn,
                                   DType::float4_e2m1fn};

TEST(Number, e2m1_has_its_sixteen_values) {
  constexpr double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (std::uint32_t code = 0; code < 8; ++code) {
    EXPECT_EQ(decode(DType::float4_e2m1fn, code), values[code]);
    EXPECT_EQ(decode(DType::float4_e2m1fn, code + 8), -values[code]);
  }
}

TEST(Number, every_code_of_a_packed_float_is_a_number_and_comes_back) {
  for (const DType dtype : packed_floats)
    for (std::uint32_t code = 0; code < code_count(dtype); ++code) {
      const double value = decode(dtype, code);
      ASSERT_EQ(value, value_by_definition(dtype, code)) << name(dtype) << " " << code;
      ASSERT_EQ(encode(dtype, value), code) << name(dtype);
    }
}

TEST(Number, packed_floats_round_to_even_and_saturate) {
  constexpr struct {
    double value, result;
  } ties[] = {{0.25, 0}, {0.75, 1},  {1.25, 1},     {1.75, 2},   {2.5, 2},    {3.5, 4},  {5, 4},
              {7, 6},    {1e300, 6}, {infinity, 6}, {0.26, 0.5}, {0.74, 0.5}, {4.99, 4}, {5.01, 6}};
  for (const auto& [value, result] : ties) {
    EXPECT_EQ(rounded_to(DType::float4_e2m1fn, {value, 0}), result) << value;
    EXPECT_EQ(rounded_to(DType::float4_e2m1fn, {-value, 0}), -result) << value;
  }
  for (const DType dtype : packed_floats) {
    const double largest = rounding_of(dtype).largest;
    const std::uint32_t codes = code_count(dtype) / 2;
    for (std::uint32_t code = 0; code + 1 < codes; ++code) {
      const double middle = (decode(dtype, code) + decode(dtype, code + 1)) / 2;
      ASSERT_EQ(encode(dtype, middle), code + (code & 1)) << name(dtype) << " " << middle;
      ASSERT_EQ(encode(dtype, std::nextafter(middle, 0.0)), code);
      ASSERT_EQ(encode(dtype, std::nextafter(middle, infinity)), code + 1);
    }
    EXPECT_EQ(encode(dtype, infinity), codes - 1);
    EXPECT_EQ(encode(dtype, -2 * largest), 2 * codes - 1);
    EXPECT_EQ(encode(dtype, std::nan("")), codes - 1) << "without its sign";
    EXPECT_EQ(encode(dtype, -std::nan("")), codes - 1);
    EXPECT_EQ(encode(dtype, -0.0), codes);
  }
  EXPECT_EQ(rounding_of(DType::float6_e2m3fn).largest, 7.5);
  EXPECT_EQ(rounding_of(DType::float6_e3m2fn).largest, 28);
  EXPECT_EQ(rounding_of(DType::float6_e2m3fn).smallest, 0.125);
  EXPECT_EQ(rounding_of(DType::float6_e3m2fn).smallest, 0.0625);
}

TEST(Number, e8m0_codes_are_powers_of_two) {
  for (std::uint32_t code = 0; code < 255; ++code) {
    const double value = decode(DType::float8_e8m0fnu, code);
    ASSERT_EQ(value, std::ldexp(1.0, static_cast<int>(code) - 127));
    for (const PowerRounding rounding :
         {PowerRounding::nearest, PowerRounding::up, PowerRounding::down}) {
      ASSERT_EQ(encode_e8m0(value, rounding), code);
      ASSERT_EQ(encode_e8m0(-value, rounding), code);
    }
    if (code == 254) continue;
    const double above = std::nextafter(value, infinity);
    EXPECT_EQ(encode_e8m0(above, PowerRounding::up), code + 1);
    EXPECT_EQ(encode_e8m0(above, PowerRounding::nearest), code);
    EXPECT_EQ(encode_e8m0(1.5 * value), code + 1);
    EXPECT_EQ(encode_e8m0(std::nextafter(1.5 * value, 0.0)), code);
    EXPECT_EQ(encode_e8m0(std::nextafter(2 * value, 0.0), PowerRounding::down), code);
  }
  EXPECT_TRUE(std::isnan(decode(DType::float8_e8m0fnu, 255)));
  EXPECT_EQ(encode_e8m0(std::nan("")), 255u);
  EXPECT_EQ(encode_e8m0(infinity), 254u);
  EXPECT_EQ(encode_e8m0(-infinity, PowerRounding::up), 254u);
  EXPECT_EQ(encode_e8m0(0), 0u);
}

TEST(Number, four_bit_integers_round_saturate_and_come_back) {
  for (int value = -8; value < 8; ++value)
    EXPECT_EQ(decode(DType::int4, encode(DType::int4, value)), value);
  for (int value = 0; value < 16; ++value)
    EXPECT_EQ(decode(DType::uint4, encode(DType::uint4, value)), value);
  EXPECT_EQ(rounded_to(DType::int4, {7.5, 0}), 7);
  EXPECT_EQ(rounded_to(DType::int4, {-1e30, 0}), -8);
  EXPECT_EQ(rounded_to(DType::int4, {2.5, 0}), 2);
  EXPECT_EQ(rounded_to(DType::uint4, {-3, 0}), 0);
  EXPECT_EQ(rounded_to(DType::uint4, {infinity, 0}), 15);
  EXPECT_EQ(rounded_to(DType::int4, {std::nan(""), 0}), 0);
}

// Two codes of 4 bits are a byte, the low nibble first; four of 6 bits are three bytes.
TEST(Number, packed_elements_have_the_bits_of_their_index) {
  const std::uint8_t nibbles[] = {0x21, 0xf3};
  constexpr double integers[] = {1, 2, 3, -1};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(load(DType::int4, nibbles, i), integers[i]);
  const std::uint32_t codes = 0x01 | 0x1f << 6 | 0x20 << 12 | 0x3e << 18;
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(load(DType::float6_e3m2fn, &codes, i),
              decode(DType::float6_e3m2fn, codes >> 6 * i & 63));
}

TEST(Number, storing_a_packed_element_keeps_its_neighbours) {
  std::mt19937_64 random(tests::random_seed());
  for (const DTypeFacts& row : dtype_table) {
    if (!is_packed(row.dtype)) continue;
    std::array<std::uint8_t, 12> memory{};
    for (std::uint8_t& byte : memory) byte = static_cast<std::uint8_t>(random());
    std::uint8_t* const middle = &memory[3];  // of a negative index, too
    const auto first = -static_cast<std::int64_t>(whole_elements(row.dtype));
    std::vector<double> values;
    for (std::int64_t i = first; i < 8; ++i) values.push_back(load(row.dtype, middle, i));
    for (int times = 0; times < 100; ++times) {
      const auto at = static_cast<std::int64_t>(random() % values.size());
      const double value =
          decode(row.dtype, static_cast<std::uint32_t>(random() % code_count(row.dtype)));
      store(row.dtype, middle, first + at, {value, 0});
      values[static_cast<std::size_t>(at)] = value;
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(load(row.dtype, middle, first + static_cast<std::int64_t>(i)), values[i])
            << row.name;
    }
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
