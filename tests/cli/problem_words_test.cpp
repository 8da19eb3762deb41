// SPDX-License-Identifier: Apache-2.0
// Converting words of a command line to lines of the problem grammar.
#include "cli/problem_words.hpp"

#include <gtest/gtest.h>

#include <gemmery/error.hpp>
#include <gemmery/problem.hpp>

namespace gemmery::cli {
namespace {

using Words = std::vector<std::string>;

TEST(ProblemWords, join_to_one_line) {
  EXPECT_EQ(problem_lines(Words{"gemm", "8x8x8", "a=f32", "b=f32:c"}),
            Words{"gemm 8x8x8 a=f32 b=f32:c"});
}

TEST(ProblemWords, may_hold_the_whole_line_in_one_word) {
  EXPECT_EQ(problem_lines(Words{"gemm 8x8x8 a=f32"}), Words{"gemm 8x8x8 a=f32"});
}

TEST(ProblemWords, begin_a_new_problem_at_every_operation) {
  EXPECT_EQ(problem_lines(Words{"gemm", "1x2x3", "gemm 4x5x6 a=f32", "gemm", "7x8x9"}),
            (Words{"gemm 1x2x3", "gemm 4x5x6 a=f32", "gemm 7x8x9"}));
}

TEST(ProblemWords, get_back_the_quotes_that_the_shell_took) {
  EXPECT_EQ(problem_lines(Words{"gemm", "1x2x3", "epilogue=D = alpha * accum"}),
            Words{"gemm 1x2x3 epilogue=\"D = alpha * accum\""});
  EXPECT_EQ(problem_lines(Words{"gemm", "1x2x3", "epilogue=say \"no\" \\"}),
            Words{"gemm 1x2x3 epilogue=\"say \\\"no\\\" \\\\\""});
}

TEST(ProblemWords, keep_quotes_that_the_shell_left) {
  EXPECT_EQ(problem_lines(Words{"gemm", "1x2x3", "epilogue=\"D = accum\""}),
            Words{"gemm 1x2x3 epilogue=\"D = accum\""});
}

TEST(ProblemWords, give_the_parser_what_a_quoted_line_gives_it) {
  const std::string epilogue = "D = alpha * accum + beta * C";
  const Words words{"gemm", "16x16x16", "a=f32", "epilogue=" + epilogue};
  EXPECT_EQ(parse_problem(only_problem_line(words)),
            parse_problem("gemm 16x16x16 a=f32 epilogue=\"" + epilogue + "\""));
}

std::string note_of(const std::string& line) {
  return vector_note(line, parse_problem(line).problem);
}

TEST(ProblemWords, get_a_note_where_a_vector_has_no_dims) {
  const std::string program = "gemm 8x8x8 a=f32 epilogue=\"D = accum + bias\" ";
  EXPECT_EQ(
      note_of(program + "bias=f32"),
      "note: bias=f32 is a whole matrix, M x N; one value for each column is bias=f32[n], for "
      "each row [m], one for all [1]");
  EXPECT_NE(note_of(program + "bias=f16:c/align=16").find("bias=f16:c[n]/align=16"),
            std::string::npos);
  for (const char* const told : {"bias=f32[n]", "bias=f32[m,n]", "bias=f32[1]"})
    EXPECT_EQ(note_of(program + told), "") << told;
  const std::string gemm = "gemm 8x8x8 a=f32 epilogue=";
  EXPECT_EQ(note_of(gemm + "\"D = accum + residual\" residual=f32"), "");
  EXPECT_EQ(note_of(gemm + "\"bias = accum; D = bias\""), "");
  EXPECT_EQ(note_of(gemm + "\"D = accum; scale = block_amax(accum, 1, 8)\" scale=f32"), "");
}

TEST(ProblemWords, before_the_first_problem_are_refused) {
  EXPECT_THROW(problem_lines(Words{"8x8x8", "a=f32"}), Error);
}

TEST(ProblemWords, are_refused_where_there_must_be_exactly_one_problem) {
  EXPECT_THROW(only_problem_line(Words{}), Error);
  EXPECT_THROW(only_problem_line(Words{"gemm", "1x1x1", "gemm", "2x2x2"}), Error);
}

}  // namespace
}  // namespace gemmery::cli
