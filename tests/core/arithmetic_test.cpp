// SPDX-License-Identifier: Apache-2.0
// Rounded quotients and multiples, and text without blanks.
#include "core/arithmetic.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/trimmed.hpp"

namespace gemmery {
namespace {

TEST(Arithmetic, quotients_and_multiples_are_rounded_up) {
  for (std::int64_t value = -20; value <= 20; ++value) {
    for (std::int64_t unit = 1; unit <= 7; ++unit) {
      const std::int64_t quotient = divide_up(value, unit);
      EXPECT_GE(quotient * unit, value);
      EXPECT_LT((quotient - 1) * unit, value);
      EXPECT_EQ(round_up(value, unit), quotient * unit);
    }
  }
  EXPECT_EQ(round_up(std::size_t{257}, 256), 512U);
}

TEST(Arithmetic, the_largest_number_is_divided_without_overflow) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(divide_up(most, 2), most / 2 + 1);
  EXPECT_EQ(round_up(most, 1), most);
}

TEST(Trimmed, blanks_around_a_text_are_left_out) {
  EXPECT_EQ(trimmed(" \t a b \r"), "a b");
  EXPECT_EQ(trimmed(" \t\r"), "");
  EXPECT_EQ(trimmed("a\r", " \t"), "a\r");
}

}  // namespace
}  // namespace gemmery
