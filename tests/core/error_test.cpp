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

TEST(Status, is_true_on_success_and_tells_why_not) {
  EXPECT_TRUE(Status::success());
  const Status no = Status::fail("alignment");
  EXPECT_FALSE(no);
  EXPECT_EQ(no.error(), "alignment");
}

}  // namespace
}  // namespace gemmery
