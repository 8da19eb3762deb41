// SPDX-License-Identifier: Apache-2.0
// Each math instruction of the table of valid combinations, on an emulated device.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/number.hpp"
#include "tests/describe/described_gemm.hpp"
#include "tests/support/no_disk_cache.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery::describe::tests {
namespace {

using DescribeInstructions = gemmery::tests::WithNvrtc;
using enum Element;

const Sketch f64_tensor{.tile = {64, 64, 16},
                        .stages = 4,
                        .instruction = {8, 8, 4},
                        .ab = float64,
                        .accumulator = float64,
                        .cd = float64};
const Sketch tf32{.tile = {128, 128, 32}, .instruction = {16, 8, 8}, .ab = float32};

TEST_F(DescribeInstructions, row_07_tensor_op_f64_8x8x4) {
  expect_exact(f64_tensor, swept_sizes(f64_tensor));
}

TEST_F(DescribeInstructions, row_08_tensor_op_f32_by_tf32) {
  expect_exact(tf32, {{4, 4, 4}, {140, 120, 92}});
  // Random reals: the relative error of each factor is at most 2^-11, that of sums far less.
  DescribedGemm gemm(operation_of(tf32), {64, 64, 512});
  std::mt19937 random(8);
  std::uniform_real_distribution<double> reals(-1, 1);
  for (Operand* operand : {&gemm.a, &gemm.b})
    for (std::int64_t row = 0; row < operand->rows(); ++row)
      for (std::int64_t column = 0; column < operand->columns(); ++column)
        operand->set(0, row, column, reals(random));
  gemm.run();
  for (std::int64_t row = 0; row < 64; ++row) {
    for (std::int64_t column = 0; column < 64; ++column) {
      double magnitude = 0;
      for (std::int64_t k = 0; k < 512; ++k)
        magnitude += std::abs(gemm.a.at(0, row, k) * gemm.b.at(0, k, column));
      EXPECT_NEAR(gemm.d.at(0, row, column), gemm.accumulated(0, row, column),
                  std::ldexp(magnitude, -9));
    }
  }
}

TEST_F(DescribeInstructions, row_09_tfloat32_instruction_gives_the_bits_of_row_08) {
  Sketch named = tf32;
  named.ab = tfloat32;
  named.tensors = float32;
  DescribedGemm by_name(operation_of(named), {36, 28, 64});
  DescribedGemm by_tensors(operation_of(tf32), {36, 28, 64});
  for (DescribedGemm* gemm : {&by_name, &by_tensors}) {
    std::mt19937 random(9);
    std::normal_distribution<double> reals;
    for (Operand* operand : {&gemm->a, &gemm->b})
      for (std::int64_t row = 0; row < operand->rows(); ++row)
        for (std::int64_t column = 0; column < operand->columns(); ++column)
          operand->set(0, row, column, reals(random));
    gemm->run();
  }
  EXPECT_EQ(by_name.d.memory(), by_tensors.d.memory());
}

TEST_F(DescribeInstructions, row_10_tensor_op_16x8x8_f16) {
  const Sketch sketch{.instruction = {16, 8, 8}};
  expect_exact(sketch, swept_sizes(sketch));
  EXPECT_EQ(operation_of(sketch).metadata().design_value("mma"), "16x8x8");
}

TEST_F(DescribeInstructions, row_11_tensor_op_16x8x8_bf16) {
  const Sketch sketch{.instruction = {16, 8, 8}, .ab = bfloat16};
  expect_exact(sketch, swept_sizes(sketch));
}

// The largest error, compared with float64, for reals in (-1, 1).
double largest_error(const Sketch& sketch, const GemmCoord& size) {
  DescribedGemm gemm(operation_of(sketch), size);
  std::mt19937 random(12);
  std::uniform_real_distribution<double> reals(-1, 1);
  for (Operand* operand : {&gemm.a, &gemm.b})
    for (std::int64_t row = 0; row < operand->rows(); ++row)
      for (std::int64_t column = 0; column < operand->columns(); ++column)
        operand->set(0, row, column, reals(random));
  gemm.run();
  double largest = 0;
  for (std::int64_t row = 0; row < size.m; ++row)
    for (std::int64_t column = 0; column < size.n; ++column)
      largest =
          std::max(largest, std::abs(gemm.d.at(0, row, column) - gemm.accumulated(0, row, column)));
  return largest;
}

TEST_F(DescribeInstructions, row_12_fast_f32_is_as_accurate_as_simt) {
  const Sketch fast{.tile = {64, 64, 32},
                    .instruction = {16, 8, 8},
                    .ab = float32,
                    .operation = MathOperation::multiply_add_fast_f32};
  Sketch plain = fast;
  plain.operation = MathOperation::multiply_add;
  const Sketch simt{.tile = {64, 64, 8},
                    .warps = {2, 2, 1},
                    .instruction = {1, 1, 1},
                    .ab = float32,
                    .opcode_class = OpcodeClass::Simt};
  const GemmCoord size{32, 32, 4096};
  const double error = largest_error(fast, size);
  EXPECT_LE(error, 2 * largest_error(simt, size));
  EXPECT_LE(10 * error, largest_error(plain, size));
}

Sketch narrowed(MathOperation operation) {
  return {.instruction = {16, 8, 8}, .ab = float32, .operation = operation};
}

TEST_F(DescribeInstructions, row_13_fast_f16_rounds_to_f16) {
  const Sketch sketch = narrowed(MathOperation::multiply_add_fast_f16);
  const GemmOperationUniversal operation = operation_of(sketch);
  DescribedGemm gemm(operation, {36, 40, 60});
  gemm.fill(13, -2048, 2048);
  gemm.b.fill_byte(0);
  for (std::int64_t k = 0; k < 40; ++k) gemm.b.set(0, k, k, 1);  // one product for each sum
  gemm.run();
  EXPECT_EQ(gemm.first_difference(), "");

  DescribedGemm rounded(operation, {32, 32, 32});
  rounded.a.set(0, 3, 5, 2049);  // ties to 2048 in float16
  rounded.a.set(0, 7, 2, 70000);
  for (std::int64_t k = 0; k < 32; ++k) rounded.b.set(0, k, 4, 1);
  rounded.run();
  EXPECT_EQ(rounded.d.at(0, 3, 4), rounded.accumulated(0, 3, 4) - 1);
  EXPECT_EQ(rounded.d.at(0, 7, 4), std::numeric_limits<double>::infinity());
}

TEST_F(DescribeInstructions, row_14_fast_bf16_rounds_to_bf16) {
  const GemmOperationUniversal operation =
      operation_of(narrowed(MathOperation::multiply_add_fast_bf16));
  DescribedGemm gemm(operation, {36, 40, 60});
  gemm.fill(14, -256, 256);
  gemm.run();
  EXPECT_EQ(gemm.first_difference(), "");
}

TEST_F(DescribeInstructions, row_15_f16_accumulators) {
  const Sketch sketch{.accumulator = float16, .cd = float16};
  expect_exact(sketch, {{8, 8, 8}, {72, 56, 88}});
  DescribedGemm gemm(operation_of(sketch), {16, 16, 128});
  gemm.fill(15, 4, 4);  // sums of 2048
  gemm.run();
  EXPECT_EQ(gemm.first_difference(), "");
}

TEST_F(DescribeInstructions, row_16_f16_with_f32_accumulators) {
  Sketch sketch;
  expect_exact(sketch, swept_sizes(sketch));
  sketch.cd = float16;
  expect_exact(sketch, swept_sizes(sketch));
}

TEST_F(DescribeInstructions, row_17_bf16_with_f32_accumulators) {
  Sketch sketch{.ab = bfloat16};
  expect_exact(sketch, swept_sizes(sketch));
  sketch.cd = bfloat16;
  expect_exact(sketch, swept_sizes(sketch));
}

TEST_F(DescribeInstructions, row_22_fp8_on_ada) {
  for (const Element ab : {float8_e4m3fn, float8_e5m2}) {
    const Sketch sketch{.compute_capability = 89,
                        .tile = {64, 64, 64},
                        .instruction = {16, 8, 32},
                        .ab = ab,
                        .cd = float16};
    expect_exact(sketch, swept_sizes(sketch), {.output_op = {.alpha = 1, .beta = 2}},
                 *parse_device("emulated:l40s"));
  }
}

const Sketch saturating{.tile = {32, 32, 128},
                        .stages = 3,
                        .warps = {1, 2, 1},
                        .instruction = {16, 8, 32},
                        .ab = int8,
                        .accumulator = int32,
                        .cd = int32,
                        .operation = MathOperation::multiply_add_saturate};

TEST_F(DescribeInstructions, row_18_int8_saturates) {
  expect_exact(saturating, swept_sizes(saturating));
  // 2^18 products of 127 * 127 exceed int32, those of 127 * -128 are below its range.
  for (const int sign : {1, -1}) {
    DescribedGemm gemm(operation_of(saturating), {16, 16, std::int64_t{1} << 18});
    gemm.fill(18, 127, 127);
    if (sign < 0) {
      std::mt19937 random(18);
      gemm.b.fill_random(random, -128, -128);
    }
    gemm.run();
    for (std::int64_t at = 0; at < 16; ++at)
      EXPECT_EQ(gemm.d.at(0, at, 15 - at), sign > 0 ? 2147483647.0 : -2147483648.0);
  }
}

TEST_F(DescribeInstructions, row_18_int8_wraps_without_saturation) {
  Sketch sketch = saturating;
  sketch.operation = MathOperation::multiply_add;
  expect_exact(sketch, swept_sizes(sketch));
  DescribedGemm gemm(operation_of(sketch), {16, 16, std::int64_t{1} << 18});
  gemm.fill(18, 127, 127);
  gemm.run();
  const auto sum =
      static_cast<std::int32_t>(static_cast<std::uint32_t>(std::uint64_t{127} * 127 << 18));
  EXPECT_EQ(gemm.d.at(0, 3, 4), static_cast<double>(sum));
}

TEST_F(DescribeInstructions, row_19_simt_f64) {
  const Sketch sketch{.tile = {64, 128, 8},
                      .stages = 5,
                      .instruction = {1, 1, 1},
                      .ab = float64,
                      .accumulator = float64,
                      .cd = float64,
                      .opcode_class = OpcodeClass::Simt,
                      .alignments = std::array{1, 1, 1}};
  expect_exact(sketch, {{1, 1, 1}, {67, 35, 41}});
}

TEST_F(DescribeInstructions, row_20_simt_f32) {
  const Sketch sketch{.tile = {128, 128, 8},
                      .stages = 4,
                      .warps = {2, 4, 1},
                      .instruction = {1, 1, 1},
                      .ab = float32,
                      .opcode_class = OpcodeClass::Simt,
                      .alignments = std::array{1, 1, 1}};
  expect_exact(sketch, {{1, 1, 1}, {131, 70, 29}});
  EXPECT_EQ(operation_of(sketch).description().tile_description.num_threads(), 256);
  EXPECT_EQ(operation_of(sketch).metadata().design_value("threads"), "256");
}

// --- layouts ------------------------------------------------------------------------------------

constexpr std::array majors{Layout::RowMajor, Layout::ColumnMajor};

void expect_all_layouts(Sketch sketch, const std::vector<GemmCoord>& sizes) {
  for (const Layout a : majors)
    for (const Layout b : majors)
      for (const Layout c : majors) {
        sketch.layouts = {a, b, c};
        expect_exact(sketch, sizes);
      }
}

TEST_F(DescribeInstructions, row_28_f16_in_every_layout) {
  expect_all_layouts({.cd = float16}, {{72, 56, 88}});
}
TEST_F(DescribeInstructions, row_28_bf16_in_every_layout) {
  expect_all_layouts({.ab = bfloat16, .cd = bfloat16}, {{72, 56, 88}});
}
TEST_F(DescribeInstructions, row_28_f32_in_every_layout) {
  expect_all_layouts({.instruction = {16, 8, 8}, .ab = float32}, {{68, 60, 76}});
}
TEST_F(DescribeInstructions, row_28_f64_in_every_layout) {
  expect_all_layouts(f64_tensor, {{66, 58, 38}});
}

TEST_F(DescribeInstructions, row_30_int8_in_every_layout) {
  Sketch sketch = saturating;
  sketch.tile = {64, 64, 64};
  expect_all_layouts(sketch, {{80, 48, 112}});
  sketch.cd = int8;
  expect_all_layouts(sketch, {{80, 48, 112}});
}

}  // namespace
}  // namespace gemmery::describe::tests
