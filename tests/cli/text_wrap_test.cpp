// SPDX-License-Identifier: Apache-2.0
// Prose at a terminal's width.
#include "cli/text_wrap.hpp"

#include <gtest/gtest.h>

namespace gemmery::cli {
namespace {

TEST(TextWrap, continues_below_the_text_after_a_lines_name) {
  EXPECT_EQ(wrapped("error     1.9 % of its bound at most", 24),
            "error     1.9 % of its\n          bound at most");
  EXPECT_EQ(wrapped("  design  tile=64x64 stages=4", 22),
            "  design  tile=64x64\n          stages=4");
}

TEST(TextWrap, indents_further_lines_of_a_plain_line_by_two) {
  EXPECT_EQ(wrapped("race: a read is not ordered", 16), "race: a read is\n  not ordered");
  EXPECT_EQ(wrapped("  at line 72 of it", 12), "  at line 72\n    of it");
}

TEST(TextWrap, leaves_what_fits_and_words_that_never_do) {
  EXPECT_EQ(wrapped("fits  as it is", 14), "fits  as it is");
  EXPECT_EQ(wrapped("a_word_that_is_too_wide", 8), "a_word_that_is_too_wide");
  EXPECT_EQ(wrapped("", 8), "");
}

}  // namespace
}  // namespace gemmery::cli
