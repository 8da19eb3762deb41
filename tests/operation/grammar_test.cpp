// SPDX-License-Identifier: Apache-2.0
#include <gemmery/error.hpp>
#include <gemmery/problem.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/support/random_seed.hpp"

namespace gemmery {
namespace {

// Defaults are not printed, and printed lines parse to equal problems.
TEST(Grammar, canonical_lines_print_as_they_were_read) {
  for (const char* const line : {
           "gemm 4096x4096x8192 a=bf16",
           "gemm 4096x4096x8192 a=bf16 b=bf16:c out=f32",
           "gemm 16x32x64x8 a=f32:c out=f32:c",
           "gemm 100x200x300 a=f16/ld=304 b=f16:c/ld=301",
           "gemm 8x8x8x4 a=f32/batch=0 b=f32/align=4",
           "gemm 5x7x9 a=f32/strides=-9,1 b=f32/strides=3,200 out=f32/strides=14,2",
           "gemm 64x64x64 a=s8 b=u8 out=s32",
           "gemm 64x64x64 a=f32 math=tf32",
           "gemm 64x64x64 a=f16 acc=f16",
           "gemm 64x96x64 a=bf16 c=bf16[n] beta=1",
           "gemm 64x96x64x3 a=bf16 c=f32[l,m] alpha=0.5 beta=-2",
           "gemm 0x5x0 a=f64",
           "gemm 1x1x1 a=e4m3 out=bf16",
       }) {
    EXPECT_EQ(to_string(parse_problem(line)), line);
  }
}

TEST(Grammar, several_spellings_of_one_problem_are_equal) {
  const auto equal = [](const char* x, const char* y) {
    EXPECT_EQ(parse_problem(x), parse_problem(y)) << x << " | " << y;
    EXPECT_EQ(hash_value(parse_problem(x).problem), hash_value(parse_problem(y).problem));
  };
  equal("gemm 8x8x8 a=f32",
        "  gemm\t8x8x8x1   b=float32:r a=torch.float32 acc=f32 math=native alpha=1 beta=0 ");
  equal("gemm 8x8x8 a=tf32", "gemm 8x8x8 a=f32 b=f32 math=tf32");
  equal("gemm 8x8x8 a=f32", "gemm 8x8x8 a=f32 \"epilogue=D=alpha*accum+beta*C\"");
  equal("gemm 1x8x8 a=f32:c", "gemm 1x8x8 a=f32/ld=100");  // a stride of extent 1 does not count
  equal("gemm 8x8x8 a=f32 c=f32", "gemm 8x8x8 a=f32 c=f32 beta=0");
}

TEST(Grammar, a_c_is_part_of_the_problem_and_beta_is_not) {
  const ProblemLine read = parse_problem("gemm 8x8x8 a=f32 c=f32 beta=2");
  const ProblemLine unread = parse_problem("gemm 8x8x8 a=f32 c=f32");
  EXPECT_EQ(read.problem, unread.problem);
  EXPECT_NE(unread.problem, parse_problem("gemm 8x8x8 a=f32").problem);
  EXPECT_EQ(to_string(unread), "gemm 8x8x8 a=f32 c=f32");
}

TEST(Grammar, says_what_is_missing_or_said_twice) {
  const auto refusal = [](const char* line) -> std::string {
    try {
      parse_problem(line);
      return "taken";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_NE(refusal("gemm 8x8x8").find("a= with A's element type, got \"none\""),
            std::string::npos);
  EXPECT_NE(refusal("gemm 8x8x8 a=f32 beta=1").find("c= where beta is not 0, got \"none\""),
            std::string::npos);
  for (const char* const line : {"gemm 8x8x8 a=f32/ld=8/ld=9", "gemm 8x8x8 a=f32/align=4/align=4",
                                 "gemm 8x8x8 a=f32/strides=8,1/strides=8,1"}) {
    EXPECT_NE(refusal(line).find("each modifier once"), std::string::npos) << line;
  }
}

TEST(Grammar, strides_of_an_empty_operand_do_not_count) {
  EXPECT_EQ(parse_problem("gemm 4x4x0 a=f32/strides=77,3"), parse_problem("gemm 4x4x0 a=f32"));
}

TEST(Grammar, alignment_follows_from_the_strides) {
  EXPECT_EQ(parse_problem("gemm 8x8x1000 a=bf16").problem.a.alignment, 16);
  EXPECT_EQ(parse_problem("gemm 8x8x1001 a=bf16").problem.a.alignment, 2);
  EXPECT_EQ(parse_problem("gemm 8x8x1001 a=bf16:c").problem.a.alignment, 16);
  EXPECT_EQ(parse_problem("gemm 8x8x1000 a=bf16/align=4").problem.a.alignment, 4);
  // Overlapping rows, one element apart.
  EXPECT_EQ(parse_problem("gemm 8x8x8 a=bf16/strides=1,1").problem.a.alignment, 2);
  EXPECT_EQ(parse_problem("gemm 8x8x8x3 a=f32/batch=1").problem.a.alignment, 4);
}

TEST(Grammar, random_problems_are_read_back_as_they_were_printed) {
  std::mt19937_64 random(tests::random_seed());
  const auto pick = [&](auto... choices) {
    const std::common_type_t<decltype(choices)...> list[] = {choices...};
    return list[random() % sizeof...(choices)];
  };
  const auto operand = [&](std::string name, std::string dtype) {
    std::string text = name + "=" + dtype;
    text += pick("", ":r", ":c");
    if (name == "out")
      return text + pick("", "/ld=4096", "/batch=99999999", "/pointers");  // shares no memory
    text += pick("", "", "/ld=4096", "/ld=513", "/strides=3,700", "/strides=-513,1");
    return text + pick("", "", "/batch=0", "/batch=999999", "/pointers");
  };
  for (int round = 0; round < 2000; ++round) {
    std::string line = "gemm " + std::to_string(random() % 500) + "x" +
                       std::to_string(random() % 500) + "x" + std::to_string(random() % 500) +
                       pick("", "x1", "x7");
    const bool is_integer = random() % 4 == 0;  // integers multiply integers only
    const auto factor = [&] {
      return is_integer ? pick("s8", "u8") : pick("f32", "bf16", "f16", "f64");
    };
    const auto result = [&] { return pick("f32", "bf16", "f16", "s8", "s32", "f64"); };
    const auto out = [&] { return is_integer ? result() : pick("f32", "bf16", "f16", "f64"); };
    line +=
        " " + operand("a", factor()) + " " + operand("b", factor()) + " " + operand("out", out());
    if (random() % 2 == 0) line += " " + operand("c", result()) + " beta=" + pick("0", "1", "0.25");
    const ProblemLine parsed = parse_problem(line);
    EXPECT_EQ(parse_problem(to_string(parsed)), parsed) << line << "\n" << to_string(parsed);
    const ProblemLine plain{parsed.problem, 1, parsed.problem.c ? 1.0 : 0.0};
    EXPECT_EQ(parse_problem(to_string(parsed.problem)), plain) << line;
  }
}

TEST(Grammar, refuses_the_types_that_arguments_refuse) {
  for (const char* const line :
       {"gemm 8x8x8 a=e2m1", "gemm 8x8x8 a=f32 out=e8m0", "gemm 8x8x8 a=u32",
        "gemm 8x8x8 a=f32 b=s8", "gemm 8x8x8 a=f32 acc=s32", "gemm 8x8x8 a=f32 math=fp8_fast",
        "gemm 8x8x8 a=s8 math=tf32"}) {
    EXPECT_THROW(parse_problem(line), Error) << line;
  }
}

TEST(Grammar, packed_operands_have_strides_of_whole_bytes) {
  for (const char* const line :
       {"gemm 33x65x96 a=e2m1 b=e2m1:c out=f32", "gemm 4x6x5 a=e2m1/ld=6 b=bf16 out=bf16",
        "gemm 8x8x8 a=e2m3 b=e3m2/ld=12 out=f32", "gemm 8x8x8 a=f16 b=e2m1/strides=2,-16 out=f16",
        "grouped_gemm 64x8x8 groups=4 a=e2m1 ends=i32 out=f32"}) {
    const ProblemLine parsed = parse_problem(line);
    EXPECT_EQ(parse_problem(to_string(parsed)), parsed) << line;
  }
  for (const char* const line :
       {"gemm 33x65x97 a=e2m1 out=f32", "gemm 4x6x5 a=e2m1/ld=7 b=bf16 out=bf16",
        "gemm 8x8x8 a=e2m3/ld=10 out=f32", "gemm 8x8x8 a=f16 b=e2m1/strides=-1,16 out=f16",
        "gemm 8x8x8 a=f16 b=e2m1/strides=3,16 out=f16", "gemm 8x8x8 a=f16 c=e2m1 beta=1",
        "grouped_gemm 64x8x8 groups=4 a=e2m1:c ends=i32 out=f32",
        "conv2d_fprop 1x8x8x8 k=8 r=3 s=3 a=e2m1 out=f32"}) {
    EXPECT_THROW(parse_problem(line), Error) << line;
  }
  const GemmProblem problem = parse_problem("gemm 32x64x96 a=e2m1 b=e2m3:c out=f32").problem;
  EXPECT_EQ(problem.a.alignment, 16);  // rows of 48 bytes
  EXPECT_EQ(problem.b.alignment, 8);   // columns of 72 bytes
  EXPECT_EQ(problem.bytes(), 32 * 48 + 64 * 72 + 32 * 64 * 4);
}

TEST(Grammar, prints_leading_dimensions_beyond_what_ld_takes) {
  for (const char* const line :
       {"gemm 2x4x4 a=f32/strides=8589934592,1", "gemm 2x4x4 a=f32/strides=1,8589934592"}) {
    const ProblemLine parsed = parse_problem(line);
    EXPECT_EQ(to_string(parsed.problem), line);
    EXPECT_EQ(parse_problem(to_string(parsed)), parsed);
  }
}

TEST(Problem, counts_work_and_bytes) {
  const GemmProblem problem = parse_problem("gemm 4x5x6x2 a=f32 b=f32/batch=0 out=f64").problem;
  EXPECT_EQ(problem.flops(), 2.0 * 4 * 5 * 6 * 2);
  EXPECT_EQ(problem.bytes(), 4.0 * 4 * 6 * 2 + 4.0 * 6 * 5 + 8.0 * 4 * 5 * 2);
}

TEST(Problem, row_major_wins_where_both_majors_fit) {
  const GemmProblem problem = parse_problem("gemm 1x8x8 a=f32:c").problem;
  EXPECT_EQ(layout_of(problem.a, 1, 8), Layout::row);
  EXPECT_EQ(layout_of(parse_problem("gemm 8x1x8 a=f32 b=f32:c").problem.b, 8, 1), Layout::row);
}

TEST(Problem, a_matrix_without_elements_is_row_major_as_it_prints) {
  for (const char* const line : {"gemm 65x63x0 a=f32", "gemm 65x63x0 a=f32:c b=f32:c"}) {
    const GemmProblem problem = parse_problem(line).problem;
    EXPECT_EQ(layout_of(problem.a, 65, 0), Layout::row) << line;
    EXPECT_EQ(layout_of(problem.b, 0, 63), Layout::row) << line;
    EXPECT_EQ(to_string(problem), "gemm 65x63x0 a=f32");
  }
}

}  // namespace
}  // namespace gemmery
