// SPDX-License-Identifier: Apache-2.0
// The manual's Markdown as text.
#include "cli/help.hpp"

#include <gtest/gtest.h>

namespace gemmery::cli {
namespace {

TEST(Help, wraps_paragraphs_and_drops_marks) {
  EXPECT_EQ(as_text("## A `verb`\n\none two\nthree `four` five\n", 14),
            "A verb\n\none two three\nfour five\n");
}

TEST(Help, wraps_an_item_under_its_description) {
  EXPECT_EQ(
      as_text("    --top N    the N best\n               of all kernels\n    --csv      rows\n",
              36),
      "    --top N    the N best of all\n               kernels\n    --csv      rows\n");
}

TEST(Help, keeps_bracketed_options_of_a_usage_line_whole) {
  EXPECT_EQ(as_text("    gemmery list [--device NAME] [--json]\n                 [--csv]\n", 32),
            "    gemmery list [--device NAME]\n        [--json] [--csv]\n");
}

TEST(Help, leaves_examples_as_they_are) {
  const char* const example = "    gemmery run gemm 1024x1024x1024 a=f32\n";
  EXPECT_EQ(as_text(example, 20), example);
}

}  // namespace
}  // namespace gemmery::cli
