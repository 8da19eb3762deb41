// SPDX-License-Identifier: Apache-2.0
// Integers to floats and back, and the integer functions, against plain definitions of them.
#include "emulator/arithmetic/conversion.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cfenv>
#include <random>

#include "emulator/arithmetic/integer_functions.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

TEST(Conversion, integers_round_as_the_host_does_in_every_mode) {
  std::mt19937_64 random(tests::random_seed());
  constexpr std::array<std::pair<Rounding, int>, 4> modes = {
      {{Rounding::nearest_even, FE_TONEAREST},
       {Rounding::toward_zero, FE_TOWARDZERO},
       {Rounding::down, FE_DOWNWARD},
       {Rounding::up, FE_UPWARD}}};
  for (int round = 0; round < 100'000; ++round) {
    const std::uint64_t bits = random() >> (random() % 64);
    volatile std::int64_t number = static_cast<std::int64_t>(random() % 2 != 0 ? bits : 0 - bits);
    for (const auto& [rounding, mode] : modes) {
      std::fesetround(mode);
      volatile float narrow = static_cast<float>(number);
      volatile double wide = static_cast<double>(number);
      std::fesetround(FE_TONEAREST);
      ASSERT_EQ(to_f32(std::int64_t{number}, rounding), narrow) << number;
      ASSERT_EQ(to_f64(std::int64_t{number}, rounding), wide) << number;
    }
  }
}

TEST(Conversion, unsigned_integers_of_64_bits_keep_their_top_bit) {
  EXPECT_EQ(to_f32(~std::uint64_t{0}, Rounding::nearest_even), 0x1p64f);
  EXPECT_EQ(to_f32(~std::uint64_t{0}, Rounding::toward_zero), 0x1.fffffep63f);
  EXPECT_EQ(to_f64(~std::uint64_t{0}, Rounding::down), 0x1.fffffffffffffp63);
}

TEST(Conversion, out_of_range_goes_to_the_end_and_nan_where_it_is_told) {
  EXPECT_EQ(to_integer<std::int32_t>(3e9, Rounding::toward_zero, 0), 2147483647);
  EXPECT_EQ(to_integer<std::int32_t>(-3e9, Rounding::toward_zero, 0), -2147483648);
  EXPECT_EQ(to_integer<std::uint8_t>(-1.0, Rounding::toward_zero, 0), 0);
  EXPECT_EQ(to_integer<std::uint8_t>(255.5, Rounding::nearest_even, 0), 255);
  EXPECT_EQ(to_integer<std::uint64_t>(0x1p64, Rounding::down, 0), ~std::uint64_t{0});
  EXPECT_EQ(to_integer<std::int64_t>(std::nan(""), Rounding::down, -5), -5);
}

TEST(Conversion, integral_roundings) {
  EXPECT_EQ(round_to_integral(2.5, Rounding::nearest_even), 2.0);
  EXPECT_EQ(round_to_integral(-2.5, Rounding::down), -3.0);
  EXPECT_EQ(round_to_integral(-2.5, Rounding::up), -2.0);
  EXPECT_EQ(round_to_integral(2.9, Rounding::toward_zero), 2.0);
}

// --- integer functions ---------------------------------------------------------------------------

// The manual's loop over bits.
template <class T>
T field_bit_by_bit(T value, std::uint32_t position, std::uint32_t length) {
  using Bits = std::make_unsigned_t<T>;
  const std::uint32_t last = bits_in<T> - 1, from = position & 255, count = length & 255;
  const std::uint32_t top = from + count - 1 < last ? from + count - 1 : last;
  const bool fill =
      std::is_signed_v<T> && count != 0 && ((static_cast<Bits>(value) >> top) & 1) != 0;
  Bits made = 0;
  for (std::uint32_t bit = 0; bit <= last; ++bit) {
    const bool is_inside = bit < count && from + bit <= last;
    const bool is_set = is_inside ? ((static_cast<Bits>(value) >> (from + bit)) & 1) != 0 : fill;
    made |= static_cast<Bits>(is_set) << bit;
  }
  return static_cast<T>(made);
}

template <class T>
void fields_agree(std::mt19937_64& random) {
  for (int round = 0; round < 50'000; ++round) {
    const T value = static_cast<T>(random());
    const auto position = static_cast<std::uint32_t>(random() % 80);
    const auto length = static_cast<std::uint32_t>(random() % 80);
    ASSERT_EQ(extract_field(value, position, length), field_bit_by_bit(value, position, length))
        << +value << " " << position << " " << length;
  }
}

TEST(IntegerFunctions, fields_are_extracted_as_the_manual_says) {
  std::mt19937_64 random(tests::random_seed());
  fields_agree<std::uint32_t>(random);
  fields_agree<std::int32_t>(random);
  fields_agree<std::uint64_t>(random);
  fields_agree<std::int64_t>(random);
}

TEST(IntegerFunctions, fields_are_inserted_bit_by_bit) {
  std::mt19937_64 random(tests::random_seed());
  for (int round = 0; round < 50'000; ++round) {
    const auto field = static_cast<std::uint32_t>(random()),
               into = static_cast<std::uint32_t>(random());
    const auto position = static_cast<std::uint32_t>(random() % 40),
               length = static_cast<std::uint32_t>(random() % 40);
    std::uint32_t expected = into;
    for (std::uint32_t bit = 0; bit < length && position + bit <= 31; ++bit) {
      const std::uint32_t at = 1u << (position + bit);
      expected = ((field >> bit) & 1) != 0 && bit < 32 ? expected | at : expected & ~at;
    }
    ASSERT_EQ(insert_field(field, into, position, length), expected);
  }
}

TEST(IntegerFunctions, tables_of_edges) {
  EXPECT_EQ(divide(7u, 0u), ~0u);
  EXPECT_EQ(remainder(-7, 0), -1);
  EXPECT_EQ(divide(std::numeric_limits<std::int32_t>::min(), -1),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(shift_left(1u, 32), 0u);
  EXPECT_EQ(shift_right(-8, 77), -1);
  EXPECT_EQ(shift_right(8u, 32), 0u);
  EXPECT_EQ(funnel_left(0x80000000, 1, 1), 3u);
  EXPECT_EQ(funnel_right(0, 1, 1), 0x80000000u);
  EXPECT_EQ(find_leading(0u, false), ~0u);
  EXPECT_EQ(find_leading(-1, false), ~0u);
  EXPECT_EQ(find_leading(-3, false), 1u);
  EXPECT_EQ(find_leading(1u, true), 31u);
  EXPECT_EQ(reverse_bits(1u), 0x80000000u);
  EXPECT_EQ(find_nth_set(0b101010, 0, 2), 3u);
  EXPECT_EQ(find_nth_set(0b101010, 5, -2), 3u);
  EXPECT_EQ(find_nth_set(0b101010, 0, 0), ~0u);
  EXPECT_EQ(find_nth_set(0b101010, 1, 0), 1u);
  EXPECT_EQ(make_mask(4, 8, false), 0xff0u);
  EXPECT_EQ(make_mask(0, 32, false), ~0u);
  EXPECT_EQ(make_mask(0, 32, true), 0u);
  EXPECT_EQ(extend_from(std::int32_t{0x80}, 8, false), -128);
  EXPECT_EQ(extend_from(std::uint32_t{0x180}, 8, false), 0x80u);
  EXPECT_EQ(extend_from(std::int32_t{0x180}, 32, true), 0);
  EXPECT_EQ(permute_bytes(0x33221100, 0x77665544, 0x7531), 0x77553311u);
  EXPECT_EQ(permute_bytes(0x80, 0, 0x8), 0xff | 0x80u << 8 | 0x80u << 16 | 0x80u << 24);
  EXPECT_EQ(permute_bytes(0x33221100, 0x77665544, byte_selectors(ByteMode::f4e, 1)), 0x44332211u);
  EXPECT_EQ(permute_bytes(0x33221100, 0x77665544, byte_selectors(ByteMode::rc16, 3)), 0x33223322u);
  EXPECT_EQ(dot_4(0xff000001, 0x02000003, 10, true, true), 11u);
  EXPECT_EQ(dot_2(0xffff0002, 0x03000104, 0, true, false, false), 7u);
  EXPECT_EQ(look_up(0xf0, 0xcc, 0xaa, 0xe8), 0xe8u);
  EXPECT_EQ(multiply_high(0x80000000u, 4u), 2u);
  EXPECT_EQ(multiply_24(std::int32_t{0xffffff}, std::int32_t{2}), -2);
}

}  // namespace
}  // namespace gemmery::emulator
