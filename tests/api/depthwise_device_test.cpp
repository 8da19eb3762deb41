// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions by their own kernels on emulated devices, with every access checked.
#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/support/served_convolutions.hpp"

namespace gemmery {
namespace {

using tests::ConvCase;
using tests::Draw;
using tests::expect_right;
using tests::expect_right_by_any;
using tests::is_soak;
using tests::kernels_of;
using tests::kinds;
using tests::Products;
using tests::reason_of;
using tests::Served;

constexpr Served on_hopper{"depthwise", "emulated:h200"};
constexpr Served on_ampere{"depthwise", "emulated:a100"};

constexpr Products all_products[] = {
    {DType::bfloat16, DType::bfloat16},     {DType::float16, DType::float32},
    {DType::float32, DType::float32},       {DType::float64, DType::float64},
    {DType::float8_e4m3fn, DType::float16}, {DType::int8, DType::int32},
    {DType::uint8, DType::uint8},
};

Products draw_products(Draw& draw) {
  return all_products[static_cast<std::size_t>(draw.below(std::ssize(all_products)))];
}

// Any geometry, with one or two filters per channel.
ConvCase draw_depthwise(Draw& draw) {
  ConvCase conv = tests::draw_case(draw);
  conv.channels = draw.below(2) == 0 ? 8 * (1 + draw.below(4)) : 2 + draw.below(20);
  conv.filters = conv.channels * (draw.below(3) == 0 ? 2 : 1);
  conv.groups = conv.channels;
  return conv;
}

TEST(DepthwiseConvolution, random_problems_are_within_the_bounds) {
  Draw draw(tests::random_seed(), 1);
  const int problems = is_soak() ? 300 : 8;
  for (int count = 0; count < problems;) {
    const ConvCase conv = draw_depthwise(draw);
    const ConvKind kind = kinds[static_cast<std::size_t>(draw.below(3))];
    const GemmProblem problem =
        tests::problem_of(conv, kind, draw_products(draw),
                          {.a = draw.below(2) * 8,
                           .b = draw.below(2) * 8,
                           .out = kind == ConvKind::wgrad ? 0 : draw.below(2) * 8});
    if (problem.flops() > 1e7) continue;
    // 1x1 at a stride of 1 are plain GEMMs.
    const Served& served = draw.below(2) == 0 ? on_hopper : on_ampere;
    if (kernels_of(problem, served).empty() && reason_of(problem, served).empty()) continue;
    ++count;
    if (reason_of(problem, served) == "operation: expected a depthwise convolution, got a GEMM")
      continue;
    expect_right_by_any({.problem = problem}, served, draw);
  }
}

// Strips of several taps, single taps, phases, chunks of taps, several channels and single ones.
TEST(DepthwiseConvolution, each_path_is_within_the_bounds) {
  Draw draw(tests::random_seed(), 1);
  int at = 0;
  const int first = is_soak() ? 0 : static_cast<int>(draw.below(3));
  for (const char* const text :
       {"conv2d_fprop 2x9x11x16 k=16 r=3 s=3 pad=1 groups=16 a=bf16",
        "conv2d_fprop 1x9x11x16 k=48 r=3 s=3 pad=1 stride=2 groups=16 a=bf16 out=f32",
        "conv2d_fprop 1x9x13x13 k=13 r=3 s=5 pad=1,2 stride=2,3 groups=13 a=f16 mode=convolution",
        "conv2d_fprop 1x20x20x16 k=16 r=31 s=31 pad=15 groups=16 a=f16",
        "conv2d_dgrad 2x9x11x16 k=48 r=3 s=3 pad=1 groups=16 a=f32",
        "conv2d_dgrad 1x9x11x13 k=13 r=5 s=5 pad=2 dilation=1,2 groups=13 a=s8 out=s32",
        "conv2d_dgrad 2x19x21x16 k=16 r=3 s=5 pad=1,2 stride=2,3 dilation=2,1 groups=16 a=f16",
        "conv3d_dgrad 1x5x6x7x8 k=16 t=2 r=3 s=3 pad=1 stride=2,3,2 groups=8 a=bf16 out=f32 "
        "mode=convolution",
        "conv2d_wgrad 2x9x11x16 k=32 r=3 s=3 pad=1 groups=16 a=bf16 out=f32 c=f32 beta=1",
        "conv2d_wgrad 1x12x12x16 k=16 r=7 s=7 pad=3 stride=2 groups=16 a=f32",
        "conv3d_wgrad 1x5x6x7x8 k=8 t=2 r=3 s=3 pad=1 dilation=2 groups=8 a=bf16 mode=convolution",
        "conv2d_fprop 2x9x11x16 k=16 r=3 s=3 pad=1 groups=16 a=f16 out=f32 epilogue=\"D = "
        "relu(accum * scale + bias) + residual\" scale=f32[l,n] bias=f32[l,n] residual=f16",
        "conv2d_wgrad 1x9x11x16 k=16 r=3 s=3 pad=1 groups=16 a=f16 epilogue=\"D = accum * scale\" "
        "scale=f32[l,m]",
        "conv2d_dgrad 1x9x11x16 k=16 r=3 s=3 pad=1 stride=2 groups=16 a=bf16 c=f32 alpha=0 beta=-1",
        "conv2d_wgrad 1x9x11x16 k=16 r=3 s=3 pad=1 groups=16 a=bf16 c=bf16 alpha=0 beta=2"}) {
    if (!is_soak() && at++ % 3 != first) continue;
    expect_right_by_any(parse_problem(text), at % 2 == 0 ? on_hopper : on_ampere, draw);
  }
}

// Statistics of each channel, over shares of the pixels and phases.
TEST(DepthwiseConvolution, programs_reduce_each_channel) {
  Draw draw(tests::random_seed(), 1);
  for (const char* const text :
       {"conv2d_fprop 3x19x21x24 k=24 r=3 s=3 pad=1 groups=24 a=f16 out=f16 epilogue=\"D = accum + "
        "bias; sums = sum(D); squares = sum(D * D); peak = amax(D)\" bias=f32[l,n] sums=f32[l,n] "
        "squares=f32[l,n] peak=f32[l,n]",
        "conv2d_fprop 2x9x11x10 k=20 r=3 s=3 pad=1 stride=2 groups=10 a=s8 out=s32 epilogue=\"D = "
        "accum; sums = sum(D); least = min(D)\" sums=f64[l,n] least=f32[l,1]",
        "conv2d_dgrad 2x19x21x24 k=24 r=3 s=3 pad=1 stride=2 groups=24 a=bf16 epilogue=\"D = accum "
        "* "
        "2; sums = sum(D)\" sums=f32[l,n]"})
    expect_right_by_any(parse_problem(text), draw.below(2) == 0 ? on_hopper : on_ampere, draw);
}

// The blocks of a wgrad add up slices of the pixels in a fixed order.
TEST(DepthwiseConvolution, slices_cover_all_pixels) {
  Draw draw(tests::random_seed(), 1);
  const ProblemLine line =
      parse_problem("conv2d_wgrad 3x20x20x16 k=16 r=3 s=3 pad=1 groups=16 a=f16 out=f32");
  std::vector<Kernel> split;
  for (const Kernel& kernel : kernels_of(line.problem, on_hopper))
    if (kernel.name().find("_parallel") != std::string::npos) split.push_back(kernel);
  ASSERT_FALSE(split.empty());
  const Kernel& kernel = split[static_cast<std::size_t>(draw.below(std::ssize(split)))];
  expect_right(line, kernel, on_hopper);
  EXPECT_TRUE(kernel.metadata().deterministic);
}

TEST(DepthwiseConvolution, names_read_back) {
  std::set<std::string> names;
  for (const char* const text :
       {"conv2d_fprop 2x8x8x16 k=16 r=3 s=3 pad=1 groups=16 a=f16",
        "conv2d_dgrad 2x8x8x16 k=16 r=3 s=3 pad=1 stride=2 groups=16 a=f16 c=f32 beta=1",
        "conv2d_wgrad 2x28x28x16 k=16 r=3 s=3 pad=1 groups=16 a=s8"}) {
    for (const Kernel& kernel : kernels_of(parse_problem(text).problem, on_hopper)) {
      const auto found = find_kernel(kernel.name());
      ASSERT_TRUE(found) << kernel.name();
      EXPECT_EQ(*found, kernel);
      EXPECT_TRUE(names.insert(kernel.name()).second) << kernel.name();
    }
  }
  EXPECT_GT(names.size(), 8U);
  EXPECT_FALSE(find_kernel("depthwise1_gemm_f16x2_f16x2_f16x2_acc-f32_fprop_1x3x1_4x3x8_none"));
  EXPECT_FALSE(
      find_kernel("depthwise1_gemm_f16x2_f16x2_f16x2_acc-f32_fprop_1x3x1_4x8x8_parallel2"));
  EXPECT_FALSE(find_kernel("depthwise1_gemm_f16r8_f16x2_f16x2_acc-f32_fprop_1x3x1_4x8x8_none"));
}

TEST(DepthwiseConvolution, come_first_where_groups_have_one_channel) {
  for (const char* const kind : {"fprop", "dgrad", "wgrad"}) {
    for (const char* const rest : {"32x56x56x128 k=128 r=3 s=3 pad=1 groups=128 a=bf16",
                                   "32x112x112x96 k=96 r=3 s=3 pad=1 stride=2 groups=96 a=f16",
                                   "8x14x14x512 k=512 r=7 s=7 pad=3 groups=512 a=f32"}) {
      const std::string text = std::string("conv2d_") + kind + " " + rest;
      for (const char* const device : {"a100", "h100", "rtx4090"}) {
        const auto kernels = get_kernels(parse_problem(text).problem, *find_device_info(device));
        ASSERT_FALSE(kernels.empty());
        EXPECT_EQ(kernels.front().family().name(), "depthwise") << text << " on " << device;
      }
    }
  }
}

TEST(DepthwiseConvolution, what_is_not_served_is_refused_by_name) {
  const auto of = [](const char* text) {
    return reason_of(parse_problem(text).problem, on_hopper);
  };
  EXPECT_EQ(of("conv2d_fprop 2x8x8x8 k=8 r=3 s=3 groups=4 a=f16"),
            "operation: expected a GEMM, or a convolution that this family takes, got conv2d_fprop "
            "with groups");
  EXPECT_EQ(of("gemm 64x64x64 a=f16"), "operation: expected a depthwise convolution, got a GEMM");
  EXPECT_EQ(
      of("conv2d_fprop 2x8x8x8 k=8 r=3 s=3 pad=1 groups=8 a=f16 epilogue=\"D = accum; sums = "
         "sum(D)\" sums=f32[1]"),
      "epilogue: expected reductions to a value of each channel alone, beside fprop or dgrad of "
      "a depthwise convolution, got others");
  EXPECT_EQ(of("conv2d_fprop 1x99x99x8 k=8 r=60 s=60 groups=8 a=f16"),
            "filter: expected taps of a channel within 98304 bytes, got 3600");
}

}  // namespace
}  // namespace gemmery
