// SPDX-License-Identifier: Apache-2.0
// The approximate functions at the special values of the manual's tables.
#include "emulator/arithmetic/approximation.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

namespace gemmery::emulator {
namespace {

TEST(Approximation, zeros_and_infinities_give_what_the_manual_lists) {
  EXPECT_EQ(approximate_reciprocal(-0.0f), -HUGE_VALF);
  EXPECT_EQ(approximate_reciprocal(HUGE_VALF), 0.0f);
  EXPECT_TRUE(std::isnan(approximate_square_root(-1.0f)));
  EXPECT_EQ(approximate_reciprocal_root(-0.0f), -HUGE_VALF);
  EXPECT_EQ(approximate_exp2(-HUGE_VALF), 0.0f);
  EXPECT_EQ(approximate_log2(0.0f), -HUGE_VALF);
  EXPECT_TRUE(std::isnan(approximate_log2(-1.0f)));
  EXPECT_TRUE(std::isnan(approximate_sine(HUGE_VALF)));
  EXPECT_EQ(approximate_tanh(-HUGE_VALF), -1.0f);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(approximate_cosine(HUGE_VALF)), 0x7fffffffu);
}

TEST(Approximation, a_very_large_divisor_counts_as_infinite_for_the_short_division_only) {
  EXPECT_EQ(approximate_quotient(0x1p127f, 0x1p127f), 0.0f);
  EXPECT_TRUE(std::isnan(approximate_quotient(HUGE_VALF, 0x1p127f)));
  EXPECT_EQ(full_range_quotient(0x1p127f, 0x1p127f), 1.0f);
}

TEST(Approximation, of_f64_only_the_upper_word_is_filled) {
  const auto bits = std::bit_cast<std::uint64_t>(approximate_reciprocal(3.0));
  EXPECT_EQ(bits & 0xffffffff, 0u);
  EXPECT_NEAR(std::bit_cast<double>(bits), 1.0 / 3.0, 0x1p-20);
  EXPECT_EQ(approximate_reciprocal(0x1p-1030), HUGE_VAL);
}

}  // namespace
}  // namespace gemmery::emulator
