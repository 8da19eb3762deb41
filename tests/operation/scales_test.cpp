// SPDX-License-Identifier: Apache-2.0
// Operands with scales and zero points: their shapes, their identity, their spelling, their
// refusals.
#include <gemmery/arguments.hpp>
#include <gemmery/error.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/scales.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operation/scaled_sums.hpp"
#include "tests/support/error_of.hpp"

namespace gemmery {
namespace {

constexpr ScaleLayout strided = ScaleLayout::strided;
constexpr ScaleLayout swizzled = ScaleLayout::swizzled_128x4;

// A (6, 256) times B (256, 192) in e4m3, and memory for scales.
struct Operands {
  std::vector<std::uint8_t> a = std::vector<std::uint8_t>(6 * 256);
  std::vector<std::uint8_t> b = std::vector<std::uint8_t>(256 * 192);
  std::vector<float> out = std::vector<float>(6 * 192);
  std::vector<float> scales = std::vector<float>(4096);

  Tensor view_a(DType dtype = DType::float8_e4m3fn) const { return {a.data(), dtype, {6, 256}}; }
  Tensor view_b(DType dtype = DType::float8_e4m3fn) const { return {b.data(), dtype, {256, 192}}; }
  Tensor view_out() { return {out.data(), DType::float32, {6, 192}}; }
  Tensor scale(std::initializer_list<std::int64_t> shape, DType dtype = DType::float32) const {
    return {scales.data(), dtype, shape};
  }
};

TEST(Scales, canonical_lines_print_as_they_were_read) {
  for (const char* const line : {
           "gemm 64x256x512 a=e4m3 scale_a=f32[tensor] out=bf16",
           "gemm 64x256x512 a=e4m3 scale_a=f32[row] scale_b=f32[row] out=bf16",
           "gemm 64x256x512 a=e4m3 scale_a=f32[1x128] scale_b=f32[128x128] out=bf16",
           "gemm 64x256x512 a=e4m3 scale_a=f32[1x128]:m scale_b=f32[128x128] out=bf16",
           "gemm 64x256x512 a=e4m3 scale_b=f32[1x128]:n/ld=260 out=bf16",
           "gemm 64x256x512 a=e4m3 scale_a=e8m0[1x32]:swizzled scale_b=e8m0[1x32] out=bf16",
           "gemm 64x256x512 a=e4m3 scale_a=e4m3[1x16]:swizzled*f32[tensor] out=bf16",
           "gemm 64x256x512 a=bf16 b=s8 scale_b=bf16[1x32] zero_b=s8[1x32] out=bf16",
           "gemm 64x256x512 a=bf16 b=s8 scale_b=bf16[row] out=bf16",
           "gemm 64x256x512x3 a=e4m3 scale_a=f32[row]/batch=0 scale_b=f32[tensor] out=bf16",
           "gemm 64x256x512 a=bf16 b=u4:c scale_b=f32[1x64] table_b=nf4.bf16 out=bf16",
           "gemm 64x256x512 a=bf16 b=u4 table_b=nf4 out=bf16",
           "gemm 64x256x512 a=u4 b=f32 table_a=0,1,-2.5,1e-20,4,5,6,7,8,9,10,11,12,13,14,0.1 "
           "out=f32",
           "gemm 64x256x512 a=bf16 b=s4:c scale_b=bf16[1x128] order_b=fragments out=bf16",
           "gemm 64x256x512 a=e2m1 b=f16:c order_a=fragments out=f32",
           "gemm 64x256x512 a=s8 scale_a=f32[row] out=f32",
           "gemm 64x256x512 a=s8 scale_a=f32[64x64] out=f32",
           "gemm 64x256x512 a=s8 scale_a=f32[128xall] out=f32 c=f32 alpha=2 beta=3",
           "gemm 64x256x512 a=e4m3 scale_a=f32[32x16]/strides=5,-40 out=f32",
           "grouped_gemm 100x64x256 groups=4 ends=i32 a=e4m3 scale_a=f32[row] scale_b=f32[row] "
           "out=bf16",
           "grouped_gemm 100x64x256 groups=4 ends=i32 a=e4m3 scale_a=f32[1x128] "
           "scale_b=f32[128x128] out=bf16",
           "grouped_gemm 96x64x256 groups=4 ragged=k ends=i32 a=e4m3 scale_a=f32[1x32]:m "
           "scale_b=e8m0[1x32]:swizzled out=f32",
           "gemm 4x4x4 a=f32 scale_a=f32[row] epilogue=\"D = accum + bias\" bias=f32[n]",
           "grouped_gemm 8x32x1 groups=0 ragged=k a=bf16 b=s8 scale_b=f32[1x32]:n zero_b=s8[3x32]",
       }) {
    const ProblemLine read = parse_problem(line);
    EXPECT_EQ(parse_problem(to_string(read)), read) << line;
    EXPECT_EQ(hash_value(parse_problem(to_string(read)).problem), hash_value(read.problem));
  }
  EXPECT_EQ(to_string(parse_problem("gemm 64x256x512 a=e4m3 scale_a=f32[RowWise] out=bf16")),
            "gemm 64x256x512 a=e4m3 scale_a=f32[row] out=bf16");
  EXPECT_EQ(to_string(parse_problem("gemm 64x256x512 a=e4m3 scale_a=f32[1x512] out=bf16")),
            "gemm 64x256x512 a=e4m3 scale_a=f32[row] out=bf16");
}

TEST(Scales, change_the_identity_of_a_problem) {
  const GemmProblem plain = parse_problem("gemm 64x256x512 a=e4m3 out=bf16").problem;
  const GemmProblem scaled =
      parse_problem("gemm 64x256x512 a=e4m3 scale_a=f32[row] out=bf16").problem;
  const GemmProblem of_b =
      parse_problem("gemm 64x256x512 a=e4m3 scale_b=f32[row] out=bf16").problem;
  EXPECT_NE(plain, scaled);
  EXPECT_NE(scaled, of_b);
  EXPECT_NE(hash_value(plain), hash_value(scaled));
  EXPECT_NE(hash_value(scaled), hash_value(of_b));
  EXPECT_GT(scaled.bytes(), plain.bytes());
}

TEST(Scales, tables_of_other_numbers_are_other_problems) {
  const auto problem_of = [](const char* table) {
    return parse_problem(std::string("gemm 8x8x8 a=bf16 b=u4 table_b=") + table).problem;
  };
  const GemmProblem exact = problem_of("nf4");
  EXPECT_NE(exact, problem_of("nf4.bf16"));
  EXPECT_NE(hash_value(exact), hash_value(problem_of("nf4.bf16")));
  EXPECT_EQ(problem_of("0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"),
            problem_of("-0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"));
  EXPECT_EQ(hash_value(problem_of("0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15")),
            hash_value(problem_of("-0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15")));
  EXPECT_EQ(rounded(code_table::nf4, DType::bfloat16).values[1], -0.6953125F);
  EXPECT_EQ(exact.b_companions.table->values[15], 1.0F);
}

TEST(Scales, arguments_describe_them_as_a_line_does) {
  Operands x;
  const GemmArguments arguments(
      ScaledOperand(x.view_a(), {{x.scale({6, 2}), scale_block::block_1x128, strided}}),
      ScaledOperand(x.view_b(), {{x.scale({2, 2}), scale_block::block_128x128, strided}}),
      x.view_out());
  EXPECT_EQ(to_string(arguments.problem()),
            "gemm 6x192x256 a=e4m3 scale_a=f32[1x128] scale_b=f32[128x128]:n "
            "out=f32");
  EXPECT_EQ(parse_problem(to_string(arguments.problem())).problem, arguments.problem());
  const GemmArguments mx(ScaledOperand(x.view_a(), {{x.scale({1024}, DType::float8_e8m0fnu),
                                                     scale_block::mx, swizzled}}),
                         x.view_b(), x.view_out());
  EXPECT_EQ(to_string(mx.problem()), "gemm 6x192x256 a=e4m3 scale_a=e8m0[1x32]:swizzled out=f32");
}

TEST(Scales, that_do_not_vary_along_k_multiply_the_sums) {
  const auto rewritten = [](const char* line) {
    const auto problem = operation::with_scaled_sums(parse_problem(line).problem);
    return problem ? to_string(*problem) : std::string("none");
  };
  EXPECT_EQ(rewritten("gemm 64x256x512 a=e4m3 scale_a=f32[1x128] out=bf16"), "none");
  EXPECT_EQ(rewritten("gemm 64x256x512 a=e4m3 out=bf16"), "none");
  EXPECT_EQ(rewritten("gemm 4x8x16 a=e4m3 scale_a=f32[row] scale_b=f32[tensor] out=f32 "
                      "epilogue=\"D = relu(accum)\""),
            "gemm 4x8x16 a=e4m3 out=f32 epilogue=\"D = relu(scale_b * (scale_a * "
            "accum))\" epilogue.scale_b=f32[1] epilogue.scale_a=f32[m]");
  const auto two = operation::with_scaled_sums(
      parse_problem("gemm 64x64x64 a=e4m3 scale_a=e4m3[1x16]:swizzled*f32[tensor] out=f32")
          .problem);
  ASSERT_TRUE(two);
  EXPECT_EQ(two->a_companions.scales.size(), 1u);
  EXPECT_EQ(two->a_companions.scales[0].layout, swizzled);
}

TEST(Scales, that_multiply_no_sums_are_spelled) {
  for (const char* const line :
       {"gemm 2x0x17 a=f32 scale_a=f32[row]", "gemm 0x2x17x3 a=f32 scale_b=f32[row] scale_a=f32",
        "gemm 4x0x0 a=e4m3 b=f16 out=f32 scale_a=f16[row]"}) {
    const GemmProblem problem = operation::with_scaled_sums(parse_problem(line).problem).value();
    EXPECT_EQ(parse_problem(to_string(problem)).problem, problem) << line;
  }
}

TEST(Scales, follow_new_memory) {
  Operands x;
  GemmArguments arguments(ScaledOperand(x.view_a(), {{x.scale({6, 1}), scale_block::row, strided}}),
                          x.view_b(), x.view_out());
  arguments.set_data("scale_a", x.scales.data() + 64);
  arguments.set_scalars(2, 0);
  EXPECT_EQ(arguments.a_companions().scales[0].data(), x.scales.data() + 64);
  const GemmArguments* const scaled = operation::ScaleBinder::scaled_sums(arguments);
  ASSERT_NE(scaled, nullptr);
  for (const EpilogueOperand& operand : scaled->epilogue_operands()) {
    if (operand.name == "scale_a") {
      EXPECT_EQ(std::get<Tensor>(operand.value).data(), x.scales.data() + 64);
    }
    if (operand.name == "alpha") {
      EXPECT_EQ(std::get<double>(operand.value), 2);
    }
  }
}

struct BadScale {
  const char* line;
  const char* operand;
  const char* text;
};

TEST(Scales, bad_lines_are_refused_by_name) {
  for (const BadScale& row : {
           BadScale{"gemm 8x8x8 a=e4m3 scale_a=s8", "scale_a", "float8_e8m0fnu"},
           BadScale{"gemm 8x8x8 a=e4m3 scale_a=f64", "scale_a", "float64"},
           BadScale{"gemm 8x8x8 a=e4m3 zero_a=e8m0 scale_a=f32", "zero_a", "int8"},
           BadScale{"gemm 8x8x8 a=f64 scale_a=f32", "A", "32 bits"},
           BadScale{"gemm 8x8x8 a=e4m3 scale_a=f32*f32*f32", "scale_a.2", "at most 2"},
           BadScale{"gemm 8x8x8 a=e4m3 scale_a=f32[tensor]*f32[1x4]", "scale_a", "first"},
           BadScale{"gemm 8x8x8 a=e4m3 scale_a=e8m0[2x4]:swizzled", "scale_a", "one row"},
           BadScale{"gemm 8x8x8 a=e4m3 scale_a=f32[1x4]:n", "column", ":m"},
           BadScale{"gemm 8x8x8 a=e4m3 scale_a=f32[foo]", "column", "block"},
           BadScale{"gemm 8x8x8 a=e4m3 scale_a=f32[0x4]", "column", "block"},
           BadScale{"gemm 8x8x8 a=f16 scale_a=f32[1x4] acc=f16", "accumulator", "float32"},
           BadScale{"gemm 8x8x8 a=s8 scale_a=f32[1x4] acc=s32", "accumulator", "float32"},
           BadScale{"gemm 8x8x8 a=f32 scale_a=f32[1x4] math=tf32", "math", "fp8"},
           BadScale{"gemm 8x8x8 a=bf16 b=s8", "B", "scale"},
           BadScale{"gemm 8x8x8 a=bf16 b=s4 table_b=nf4", "table_b", "uint4"},
           BadScale{"gemm 8x32x64 a=bf16 b=bf16:c order_b=fragments", "B", "4 or 8 bits"},
           BadScale{"gemm 8x32x64 a=bf16 b=e3m2:c order_b=fragments", "B", "4 or 8 bits"},
           BadScale{"gemm 8x48x64 a=bf16 b=e2m1:c order_b=fragments", "B", "32 columns"},
           BadScale{"gemm 8x32x48 a=bf16 b=e2m1:c order_b=fragments", "B", "32 along k"},
           BadScale{"gemm 8x32x64 a=bf16 b=e2m1 order_b=fragments", "B", "packed memory"},
           BadScale{"gemm 8x32x64 a=bf16 b=e2m1:c/ld=96 order_b=fragments", "B", "packed memory"},
           BadScale{"gemm 8x32x64 a=bf16 b=e2m1:c order_b=tiles", "column", "fragments"},
           BadScale{"gemm 8x8x8 a=bf16 b=u4 table_b=nf5", "column", "sixteen numbers"},
           BadScale{"gemm 8x8x8 a=bf16 b=u4 table_b=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14", "column",
                    "sixteen numbers"},
           BadScale{"gemm 8x8x8 a=bf16 b=u4 table_b=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16",
                    "column", "sixteen numbers"},
           BadScale{"gemm 8x8x8 a=bf16 b=u4 table_b=inf,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
                    "table_b", "finite"},
           BadScale{"gemm 8x8x8 a=bf16 b=u4 table_b=nf4 zero_b=u4", "zero_b", "table"},
           BadScale{"conv2d_fprop 1x4x4x8 k=8 r=1 s=1 a=e4m3 scale_a=f32", "scale_a",
                    "convolution"},
           BadScale{"grouped_gemm 8x8x8 groups=2 list=host a=e4m3 scale_a=f32[1x4]", "scale_a",
                    "a list of problems"},
           BadScale{"gemm 8x8x8 a=f32 scale_a=f32[row] epilogue=\"D = accum * scale_a\" "
                    "epilogue.scale_a=f32:scalar",
                    "scale_a", "another name"},
       }) {
    const std::string message = tests::error_of([&] { parse_problem(row.line); }).what();
    EXPECT_NE(message.find(row.operand), std::string::npos) << row.line << "\n" << message;
    EXPECT_NE(message.find(row.text), std::string::npos) << row.line << "\n" << message;
  }
}

TEST(Scales, shapes_are_checked_and_never_guessed) {
  Operands x;
  const auto refusal = [&](const Tensor& tensor, ScaleBlock block, ScaleLayout layout) {
    return std::string(tests::error_of([&] {
                         const GemmArguments arguments(
                             ScaledOperand(x.view_a(), {{tensor, block, layout}}), x.view_b(),
                             x.view_out());
                         (void)arguments;
                       }).what());
  };
  EXPECT_NE(refusal(x.scale({6}), scale_block::block_1x128, strided).find("(6, 2)"),
            std::string::npos);
  EXPECT_NE(refusal(x.scale({2, 6}), scale_block::block_1x128, strided).find("never inferred"),
            std::string::npos);
  EXPECT_NE(refusal(x.scale({6, 8}, DType::float8_e8m0fnu), scale_block::mx, swizzled)
                .find("1024 packed values"),
            std::string::npos);
  EXPECT_NE(refusal(Tensor(nullptr, DType::float32, {6, 2}), scale_block::block_1x128, strided)
                .find("scale_a"),
            std::string::npos);
  const std::string overlap =
      tests::error_of([&] {
        const GemmArguments arguments(
            ScaledOperand(x.view_a(), {{Tensor(x.out.data(), DType::float32, {6, 2}),
                                        scale_block::block_1x128, strided}}),
            x.view_b(), x.view_out());
        (void)arguments;
      }).what();
  EXPECT_NE(overlap.find("scale_a"), std::string::npos) << overlap;
}

TEST(Scales, counts_of_both_layouts) {
  EXPECT_EQ(swizzled_scale_count(130, 160, scale_block::mx), 256 * 8);
  EXPECT_EQ(scale_count(130, 160, scale_block::mx, strided), 130 * 5);
  EXPECT_EQ(scale_count(130, 160, scale_block::tensor, strided), 1);
  EXPECT_EQ(scale_count(129, 448, scale_block::block_128x128, strided), 2 * 4);
}

}  // namespace
}  // namespace gemmery
