// SPDX-License-Identifier: Apache-2.0
#include <gemmery/error.hpp>
#include <gemmery/status.hpp>

#include <gtest/gtest.h>

namespace gemmery {
namespace {

TEST(Error, message_holds_every_field_that_is_there) {
  const Error error({.kind = ErrorKind::invalid_argument,
                     .operand = "B",
                     .expected = "8192 rows",
                     .got = "4096",
                     .hint = "transpose it",
                     .cause = "below"});
  EXPECT_STREQ(error.what(),
               "invalid argument: B: expected 8192 rows, got 4096; transpose it [below]");
  const Error bare({.kind = ErrorKind::io, .got = "disk full"});
  EXPECT_STREQ(bare.what(), "input/output error: disk full");
}

TEST(Error, message_repeats_the_start_of_a_long_text) {
  std::string name;
  for (int at = 0; at < 35'000; ++at) name += "\u00e4";  // two bytes each
  const Error error({.operand = "kernel", .expected = "a name", .got = "k" + name});
  const std::string message = error.what();
  EXPECT_LT(message.size(), 4'100U);
  EXPECT_TRUE(message.ends_with("\u00e4... (70001 bytes)")) << message;
  EXPECT_EQ(error.got().size(), 70'001U);
}

TEST(Status, is_true_on_success_and_tells_why_not) {
  EXPECT_TRUE(Status::success());
  const Status no = Status::fail("alignment");
  EXPECT_FALSE(no);
  EXPECT_EQ(no.error(), "alignment");
}

}  // namespace
}  // namespace gemmery
