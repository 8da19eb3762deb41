// SPDX-License-Identifier: Apache-2.0
// The simt family's answers: names, matches, refusals, order, source. No GPU and no compiler are
// needed.
#include "providers/templates/simt/family.hpp"

#include <gtest/gtest.h>
#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "kernel/rules.hpp"
#include "providers/templates/simt/design.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::templates {
namespace {

const SimtFamily& family() {
  static const SimtFamily simt;
  return simt;
}

const DeviceInfo& h200() {
  static const DeviceInfo info = *find_device_info("h200");
  return info;
}

std::vector<RankedKernel> match(const std::string& line) {
  const GemmProblem problem = parse_problem(line).problem;
  std::vector<RankedKernel> kernels;
  family().match({problem, h200()}, kernels);
  std::ranges::sort(kernels, {}, &RankedKernel::predicted_us);
  return kernels;
}

std::string why_not(const std::string& line) {
  const GemmProblem problem = parse_problem(line).problem;
  std::vector<Reason> reasons;
  family().explain({problem, h200()}, reasons);
  return reasons.empty() ? "" : reasons.front().failed;
}

TEST(SimtFamily, every_kernel_is_legal_and_names_differ) {
  std::set<std::string> names;
  std::size_t count = 0;
  std::mt19937_64 random(tests::random_seed());
  family().enumerate([&](const Kernel& kernel) {
    ++count;
    ASSERT_TRUE(abi::is_legal(simt_design(kernel))) << simt_name(kernel);
    if (random() % 16 != 0) return;
    EXPECT_TRUE(names.insert(family().kernel_name(kernel)).second) << simt_name(kernel);
  });
  EXPECT_GT(count, 100'000U);
  std::printf("%zu kernels\n", count);
}

TEST(SimtFamily, a_name_reads_back_as_its_kernel) {
  std::mt19937_64 random(tests::random_seed());
  family().enumerate([&](const Kernel& kernel) {
    if (random() % 64 != 0) return;
    const auto parsed = family().parse_name(family().kernel_name(kernel));
    ASSERT_TRUE(parsed) << simt_name(kernel);
    EXPECT_EQ(*parsed, kernel) << simt_name(kernel);
  });
}

TEST(SimtFamily, other_names_are_not_its_own) {
  const std::string good = match("gemm 64x64x64 a=f32 b=f32 out=f32").front().name();
  ASSERT_TRUE(family().parse_name(good));
  for (const std::string& bad :
       {std::string(), std::string("simt"), "x" + good, good + "_", good + "_c-",
        good.substr(0, good.size() - 1), "simt2" + good.substr(5),
        std::string("simt1_gemm_f32r16_f32r16_f32r16_acc-f32_96x96x8_8x8_k1_s4"),
        std::string("simt1_gemm_f32r16_f32r16_f32r16_acc-f32_0x0x0_0x0_k0_s0"),
        std::string("simt1_gemm_float32r16_f32r16_f32r16_acc-f32_128x128x8_8x8_k1_s4"),
        std::string("simt1_gemm_f32r3_f32r16_f32r16_acc-f32_128x128x8_8x8_k1_s4")}) {
    EXPECT_FALSE(family().parse_name(bad)) << bad;
  }
}

TEST(SimtFamily, every_match_keeps_its_own_rules_and_supports_the_problem) {
  for (const std::string line :
       {"gemm 64x64x64 a=f32 b=f32:c out=f32", "gemm 33x35x37 a=bf16 b=e4m3 out=f16 c=f32 beta=1",
        "gemm 100x64x7 a=f64 b=f64 out=f64:c", "gemm 1x4096x4096x3 a=s8 b=u8:c out=s8",
        "gemm 0x5x5 a=f32 b=f32 out=f32", "gemm 5x5x0 a=f32 b=f32 out=f32"}) {
    const GemmProblem problem = parse_problem(line).problem;
    const auto kernels = match(line);
    EXPECT_FALSE(kernels.empty()) << line;
    for (const RankedKernel& kernel : kernels) {
      EXPECT_TRUE(kernel::keeps_rules(kernel.operands(), problem))
          << line << " " << simt_name(kernel);
      EXPECT_TRUE(family().supports(kernel, {problem, h200()})) << line << " " << simt_name(kernel);
      EXPECT_GT(kernel.predicted_us, 0) << line;
    }
  }
}

// A packed vector is row and column major at once, but its rows start one element apart: a kernel
// that takes 16 bytes of a row at a time would begin between them.
TEST(SimtFamily, vectors_are_read_along_their_elements) {
  const auto takes = [](const std::string& line, OperandRule OperandRules::*operand,
                        LayoutRule layout) {
    return std::ranges::any_of(match(line), [&](const RankedKernel& kernel) {
      const OperandRule& rule = kernel.operands().*operand;
      return rule.layout == layout && rule.alignment > byte_width(rule.dtype);
    });
  };
  EXPECT_FALSE(takes("gemm 64x1x64 a=f32", &OperandRules::b, LayoutRule::row));
  EXPECT_TRUE(takes("gemm 64x1x64 a=f32", &OperandRules::b, LayoutRule::column));
  EXPECT_FALSE(takes("gemm 1x64x64 a=f32", &OperandRules::a, LayoutRule::column));
  EXPECT_TRUE(takes("gemm 1x64x64 a=f32", &OperandRules::a, LayoutRule::row));
  EXPECT_FALSE(takes("gemm 64x64x1 a=s8 out=s32", &OperandRules::a, LayoutRule::row));
  EXPECT_FALSE(takes("gemm 64x64x1 a=s8 out=s32", &OperandRules::b, LayoutRule::column));
  EXPECT_FALSE(takes("gemm 64x64x64 a=f32 b=f32/strides=1,1", &OperandRules::b, LayoutRule::row));
  EXPECT_FALSE(takes("gemm 64x64x64x3 a=f32 b=f32/batch=1", &OperandRules::b, LayoutRule::row));
}

TEST(SimtFamily, a_matrix_without_unit_stride_is_served) {
  GemmProblem problem = parse_problem("gemm 64x64x64 a=f32 b=f32 out=f32").problem;
  for (MatrixType* matrix : {&problem.a, &problem.b, &problem.out}) {
    matrix->row_stride = 200;
    matrix->column_stride = 3;
    matrix->alignment = 4;
  }
  std::vector<RankedKernel> kernels;
  family().match({problem, h200()}, kernels);
  ASSERT_FALSE(kernels.empty());
  for (const RankedKernel& kernel : kernels) EXPECT_EQ(kernel.operands().a.layout, LayoutRule::any);
}

TEST(SimtFamily, vector_stores_are_refused_where_rows_do_not_hold_them_wholly) {
  GemmProblem problem = parse_problem("gemm 64x62x64 a=f32 b=f32 out=f32").problem;
  problem.out.row_stride = 64;
  problem.out.alignment = 16;
  std::vector<RankedKernel> kernels;
  family().match({problem, h200()}, kernels);
  ASSERT_FALSE(kernels.empty());
  for (const RankedKernel& kernel : kernels)
    EXPECT_EQ(kernel.operands().out.layout, LayoutRule::any);
  const RankedKernel wide = match("gemm 64x64x64 a=f32 b=f32 out=f32").front();
  ASSERT_EQ(wide.operands().out.alignment, 16);
  const Status status = family().supports(wide, {problem, h200()});
  EXPECT_NE(status.error().find("expected N a multiple of 4"), std::string::npos) << status.error();
}

TEST(SimtFamily, each_refusal_has_its_reason) {
  EXPECT_NE(why_not("gemm 8x8x8 a=f32 b=f32 out=f32 acc=f64").find("accumulator"),
            std::string::npos);
  EXPECT_NE(why_not("gemm 8x8x8 a=f32 b=f32 out=f64").find("out"), std::string::npos);
  EXPECT_NE(why_not("gemm 8x8x8 a=f32 b=f32 out=f32 math=tf32").find("math"), std::string::npos);
  EXPECT_EQ(why_not("gemm 8x8x8 a=f32 b=f32 out=f32"), "");
}

TEST(SimtFamily, large_outputs_get_large_tiles_and_little_ones_little) {
  const auto best = [](const std::string& line) { return simt_tile(match(line).front()); };
  EXPECT_GE(best("gemm 4096x4096x4096 a=f32 b=f32 out=f32").m, 128);
  EXPECT_LE(best("gemm 256x256x256 a=f32 b=f32 out=f32").m, 32);
  EXPECT_LE(best("gemm 4x4096x4096 a=f32 b=f32 out=f32").m, 8);
  EXPECT_LE(best("gemm 4096x4x4096 a=f32 b=f32 out=f32").n, 8);
  EXPECT_GE(best("gemm 4096x4096x4096 a=f64 b=f64 out=f64").m, 64);
  EXPECT_GE(best("gemm 4096x4096x4096 a=s8 b=s8 out=s32").m, 64);
}

TEST(SimtFamily, vectors_are_preferred_where_alignment_allows) {
  const RankedKernel best = match("gemm 1024x1024x1024 a=bf16 b=bf16:c out=bf16").front();
  EXPECT_EQ(best.operands().a.alignment, 16);
  EXPECT_EQ(best.operands().b.alignment, 16);
  EXPECT_EQ(best.operands().out.alignment, 16);
}

TEST(SimtFamily, source_is_short_includes_one_header_and_is_the_same_each_time) {
  const Kernel kernel = match("gemm 256x256x256 a=f32 b=f32:c out=f32").front();
  const auto source = family().emit(kernel, {90, 0});
  EXPECT_EQ(source.text, family().emit(kernel, {90, 0}).text);
  EXPECT_LE(std::ranges::count(source.text, '\n'), 20);
  EXPECT_EQ(source.text.find("#include"), source.text.rfind("#include"));
  EXPECT_NE(source.text.find("#include <device/gemm/simt.cuh>"), std::string::npos);
  EXPECT_EQ(source.max_dynamic_shared_bytes, abi::shared_bytes(simt_design(kernel)));
}

}  // namespace
}  // namespace gemmery::templates
