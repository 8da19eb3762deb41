// SPDX-License-Identifier: Apache-2.0
// Numbers with units: three digits, and a unit that keeps them below a thousand.
#include "cli/quantities.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace gemmery::cli {
namespace {

TEST(Quantities, have_three_digits_and_a_fitting_unit) {
  EXPECT_EQ(time_text(0.5), "0.50 us");
  EXPECT_EQ(time_text(12.34), "12.3 us");
  EXPECT_EQ(time_text(999.7), "1.00 ms");
  EXPECT_EQ(time_text(8430), "8.43 ms");
  EXPECT_EQ(time_text(5e9), "5000 s");
  EXPECT_EQ(rate_text(254e9), "254 GFLOP/s");
  EXPECT_EQ(rate_text(51.2e12), "51.2 TFLOP/s");
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(999), "999 bytes");
  EXPECT_EQ(size_text(1500000), "1.50 MB");
  EXPECT_EQ(share_text(0.631), "63.1 %");
}

TEST(Quantities, that_are_no_numbers_are_not_dressed_up) {
  EXPECT_EQ(time_text(std::numeric_limits<double>::quiet_NaN()), "? us");
  EXPECT_EQ(share_text(std::numeric_limits<double>::infinity()), "? %");
}

}  // namespace
}  // namespace gemmery::cli
