// SPDX-License-Identifier: Apache-2.0
// Convolutions by sm90 kernels on an emulated H200, which checks copies in im2col mode by the rules
// of hardware: unusual geometries and random ones, compared with their bounds, and the limits,
// which errors name.
#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <algorithm>
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

constexpr Served hopper{"sm90", "emulated:h200"};

constexpr Products all_products[] = {
    {DType::bfloat16, DType::bfloat16},
    {DType::float16, DType::float16},
    {DType::bfloat16, DType::float32},
    {DType::float32, DType::float32, Math::tf32},
    {DType::float32, DType::float32, Math::bf16x3},
    {DType::int8, DType::int32},
    {DType::uint8, DType::int32},
    {DType::float8_e4m3fn, DType::float16},
    {DType::float8_e5m2, DType::float32, Math::fp8_fast},
};

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// The same geometry with numbers of channels that copies support: units of 16 bytes, or whole
// stages if a copy would reach into the next group; also in some wgrads, whose taps are otherwise
// padded.
ConvCase with_whole_units(ConvCase conv, ConvKind kind, DType dtype) {
  const auto width = static_cast<std::int64_t>(byte_width(dtype));
  const std::int64_t unit = 16 / width;
  const std::int64_t stage = 128 / width;
  const bool has_groups = conv.groups > 1;
  const bool has_whole_taps = kind == ConvKind::wgrad && (conv.channels + conv.filters) % 2 == 0;
  const std::int64_t of_channels =
      has_whole_taps || (has_groups && kind == ConvKind::fprop) ? stage : unit;
  const std::int64_t of_filters = has_groups && kind == ConvKind::dgrad ? stage : unit;
  conv.channels = conv.groups * round_up(conv.channels / conv.groups, of_channels);
  conv.filters = conv.groups * round_up(conv.filters / conv.groups, of_filters);
  return conv;
}

GemmProblem problem_of(const ConvCase& conv, ConvKind kind, const Products& products,
                       std::int64_t gap = 0) {
  return tests::problem_of(conv, kind, products,
                           {.a = gap, .b = kind == ConvKind::wgrad ? gap : 0});
}

// Whether a problem exceeds the limits of copies in im2col mode, or of phases of a strided dgrad.
bool exceeds_copies(const GemmProblem& problem) {
  const std::string reason = reason_of(problem, hopper);
  return reason.find(" along ") != std::string::npos || reason.find("dgrad") != std::string::npos;
}

class NastyConvolutionsOnHopper : public testing::TestWithParam<tests::NastyConvolution> {};

// With channels in whole units every kind has kernels, or exceeds copies in im2col mode; a short
// run runs one in five of the small ones.
TEST_P(NastyConvolutionsOnHopper, all_kinds_are_within_the_bounds) {
  static Draw draw(tests::random_seed(), 1);
  for (const ConvKind kind : kinds) {
    if (GetParam().is_refused()) continue;
    const Products products = all_products[draw.below(2)];
    const ConvCase conv = with_whole_units(GetParam().conv(), kind, products.operands);
    const GemmProblem problem = tests::imaginary_problem(conv, kind, products);
    if (exceeds_copies(problem)) continue;
    EXPECT_FALSE(kernels_of(problem, hopper).empty())
        << to_string(problem) << ": " << reason_of(problem, hopper);
    if (tests::is_run(problem, GetParam(), draw, 5))
      expect_right_by_any({.problem = problem}, hopper, draw);
  }
}

INSTANTIATE_TEST_SUITE_P(, NastyConvolutionsOnHopper,
                         testing::ValuesIn(tests::nasty_convolutions()),
                         [](const auto& tested) { return tested.param.name; });

TEST(ConvolutionOnHopper, few_of_the_77_cases_exceed_its_copies) {
  int beyond = 0;
  for (const tests::NastyConvolution& nasty : tests::nasty_convolutions()) {
    for (const ConvKind kind : kinds) {
      if (nasty.is_refused()) continue;
      const ConvCase conv = with_whole_units(nasty.conv(), kind, DType::bfloat16);
      beyond +=
          exceeds_copies(tests::imaginary_problem(conv, kind, {DType::bfloat16, DType::bfloat16}));
    }
  }
  EXPECT_LT(beyond, 35);
}

TEST(ConvolutionOnHopper, random_problems_are_within_the_bounds) {
  const double most_flops = is_soak() ? 5e7 : 5e6;
  Draw draw(tests::random_seed(), 1);
  const int problems = is_soak() ? 600 : 16;
  int count = 0;
  while (count < problems) {
    const ConvKind kind = kinds[static_cast<std::size_t>(draw.below(3))];
    const Products products =
        all_products[static_cast<std::size_t>(draw.below(std::ssize(all_products)))];
    ConvCase conv = with_whole_units(tests::draw_case(draw), kind, products.operands);
    if (kind == ConvKind::dgrad && draw.below(2) > 0) conv.stride.assign(conv.dimensions(), 1);
    const std::int64_t unit = 16 / static_cast<std::int64_t>(byte_width(products.operands));
    const GemmProblem problem = problem_of(conv, kind, products, unit * draw.below(2));
    if (problem.flops() > most_flops || exceeds_copies(problem)) continue;
    ++count;
    // Some are plain GEMMs.
    if (kernels_of(problem, hopper).empty() && reason_of(problem, hopper).empty()) continue;
    expect_right_by_any({.problem = problem}, hopper, draw);
  }
}

TEST(ConvolutionOnHopper, programs_and_addends_are_those_of_a_product) {
  Draw draw(tests::random_seed(), 1);
  for (const char* const text :
       {"conv2d_fprop 2x7x6x64 k=48 r=3 s=3 pad=1 a=bf16 epilogue=\"D = relu(accum + bias) + "
        "residual; sums = sum(D)\" bias=f32[n] residual=bf16 sums=f32[n]",
        "conv2d_fprop 2x7x6x64 k=48 r=3 s=3 pad=1 stride=2 a=f16 epilogue=\"D = relu(accum + "
        "bias); most = amax(D)\" bias=f16[n] most=f32[1]",
        "conv2d_fprop 3x7x6x24 k=40 r=3 s=3 pad=1 batch=images a=f16 epilogue=\"D = accum * "
        "scale\" scale=f32[l,n]",
        "conv2d_fprop 2x7x6x128 k=32 r=3 s=3 pad=1 groups=2 a=bf16 epilogue=\"D = accum + bias\" "
        "bias=f32[l,n]",
        "conv2d_wgrad 2x7x6x64 k=24 r=3 s=3 pad=1 a=bf16 out=f32 c=f32 beta=1",
        "conv2d_wgrad 2x7x6x64 k=24 r=1 s=1 stride=2 a=bf16 c=bf16 alpha=0 beta=2",
        "conv2d_dgrad 2x7x6x64 k=24 r=3 s=3 pad=1 a=f16 c=f16 alpha=2 beta=-1",
        "conv2d_dgrad 2x7x6x64 k=24 r=3 s=3 pad=1 a=f16 c=f16 alpha=0 beta=-1",
        "conv2d_dgrad 2x7x6x64 k=24 r=3 s=3 pad=1 stride=2 a=f16 alpha=3",
        "conv2d_dgrad 2x7x6x64 k=24 r=3 s=2 pad=1 stride=2,3 dilation=2,1 a=f16 "
        "epilogue=\"D = relu(accum + bias)\" bias=f16[n]",
        "conv2d_dgrad 2x7x6x64 k=24 r=1 s=1 stride=2 a=bf16 out=f32/ld=80",
        "conv2d_dgrad 2x7x6x64 k=24 r=3 s=3 pad=1 stride=2 a=f16 alpha=0",
        "conv2d_dgrad 2x9x6x64 k=24 r=3 s=3 pad=1 stride=2 a=f16 c=f16 alpha=2 beta=-1",
        "conv2d_dgrad 2x9x6x64 k=24 r=1 s=1 stride=2 a=bf16 out=f32 c=f32/ld=72 beta=1",
        "conv3d_dgrad 1x3x5x6x64 k=24 t=2 r=3 s=1 pad=1,1,0 stride=1,2,3 a=bf16 c=bf16 beta=2",
        "conv2d_dgrad 2x9x10x160 k=128 r=3 s=2 pad=1 stride=2 groups=2 a=f16 alpha=2 "
        "mode=convolution",
        "conv2d_dgrad 2x9x10x48 k=256 r=1 s=1 stride=2 groups=2 a=bf16 out=f32",
        "conv1d_dgrad 2x33x96 k=256 s=5 pad=2 stride=2 groups=4 a=bf16/ld=272 out=bf16/ld=104",
        "conv2d_wgrad 2x7x6x40 k=24 r=3 s=3 pad=1 a=bf16 alpha=0",
        "conv2d_wgrad 2x7x6x72 k=24 r=3 s=3 pad=1 groups=3 a=bf16 out=f32 alpha=2",
        "conv2d_fprop 2x7x6x64 k=24 r=3 s=3 pad=1 a=s8 out=s8 c=s8 alpha=0.02 beta=1",
        "conv2d_fprop 2x7x6x64 k=24 r=3 s=3 pad=1 a=f16 mode=convolution alpha=0"}) {
    if (is_soak() || draw.below(2) > 0) expect_right_by_any(parse_problem(text), hopper, draw);
  }
}

TEST(ConvolutionOnHopper, splits_and_clusters_cover_all_taps) {
  Draw draw(tests::random_seed(), 1);
  for (const char* const text : {"conv2d_fprop 1x9x9x64 k=64 r=3 s=3 pad=1 a=f16",
                                 "conv2d_dgrad 1x9x9x72 k=64 r=3 s=3 pad=1 a=f16",
                                 "conv2d_wgrad 3x20x20x64 k=64 r=3 s=3 pad=1 a=f16"}) {
    const ProblemLine line = parse_problem(text);
    std::vector<Kernel> chosen[6];
    for (const Kernel& kernel : kernels_of(line.problem, hopper)) {
      const std::string name = kernel.name();
      const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
      const std::size_t set = has("_1x1_k")      ? 0
                              : has("_parallel") ? 1
                              : has("_stream")   ? 2
                              : has("_2x1_")     ? 3
                              : has("_1x2_")     ? 4
                                                 : 5;
      chosen[set].push_back(kernel);
    }
    for (const auto& kernels : chosen) {
      if (kernels.empty() || (!is_soak() && draw.below(2) > 0)) continue;
      expect_right(line, kernels[static_cast<std::size_t>(draw.below(std::ssize(kernels)))],
                   hopper);
    }
    EXPECT_FALSE(chosen[3].empty() || chosen[4].empty()) << text;
  }
}

TEST(ConvolutionOnHopper, names_read_back) {
  int count = 0;
  for (const char* const text :
       {"conv2d_fprop 2x8x8x64 k=64 r=3 s=3 pad=1 a=f16", "conv1d_dgrad 2x8x64 k=64 s=3 pad=1 a=s8",
        "conv3d_wgrad 2x8x8x8x64 k=64 t=2 r=3 s=3 pad=1 a=f16"}) {
    for (const Kernel& kernel : kernels_of(parse_problem(text).problem, hopper)) {
      const auto found = find_kernel(kernel.name());
      ASSERT_TRUE(found) << kernel.name();
      EXPECT_EQ(*found, kernel);
      ++count;
    }
  }
  EXPECT_GT(count, 100);
}

TEST(ConvolutionOnHopper, limits_are_refused_by_name) {
  const auto of = [](const char* text) { return reason_of(parse_problem(text).problem, hopper); };
  EXPECT_EQ(of("conv2d_dgrad 2x9x9x64 k=64 r=3 s=3 pad=1 stride=3 a=f16"),
            "stride: expected at most 8 phases of pixels for dgrad, got 9");
  EXPECT_EQ(of("conv3d_dgrad 2x9x9x9x64 k=64 t=3 r=3 s=3 pad=1 stride=2 a=f16"),
            "stride: expected extents of dx that it divides along a dimension, got others along "
            "all");
  EXPECT_EQ(of("conv2d_dgrad 2x8x8x192 k=192 r=3 s=3 pad=1 stride=2 groups=3 a=f16"),
            "stride: expected at most 8 phases of pixels for dgrad, got 12");
  EXPECT_EQ(of("conv2d_dgrad 2x8x8x128 k=128 r=3 s=3 pad=1 stride=2 groups=2 a=f16 c=f16 beta=1"),
            "epilogue: expected alpha * accum alone for a dgrad with a stride and groups");
  EXPECT_EQ(of("conv2d_dgrad 2x8x8x128 k=128 r=3 s=3 pad=1 stride=2 groups=2 a=f16 "
               "b=f16/strides=600,192,64"),
            "B: expected adjacent filters for a dgrad with a stride and groups, got other strides");
  EXPECT_EQ(
      of("conv2d_dgrad 2x8x8x64 k=64 r=3 s=3 pad=1 stride=2 a=f16 epilogue=\"D = accum + "
         "rest\" rest=f16"),
      "epilogue operand rest: expected an input that varies along channels alone, for a dgrad "
      "with a stride");
  EXPECT_EQ(of("conv2d_dgrad 2x8x8x64 k=64 r=3 s=3 pad=1 stride=2 batch=images a=f16"),
            "batch: expected one matrix for a dgrad with a stride, got 2 images");
  EXPECT_EQ(
      of("conv2d_dgrad 2x8x8x12 k=64 r=3 s=3 pad=1 stride=2 a=f16 b=f16/ld=16"),
      "out: expected channels in units of 16 bytes for a dgrad with a stride, got 24 bytes at "
      "an alignment of 8");
  EXPECT_EQ(of("conv2d_fprop 2x40x8x64 k=64 r=3 s=3 pad=1 stride=9,1 a=f16"),
            "A: expected a stride of at most 8 along height, got 9");
  EXPECT_EQ(of("conv2d_fprop 2x8x300x64 k=64 r=1 s=257 pad=0,128 a=f16"),
            "A: expected taps that reach over at most 256 pixels along width, got 257");
  EXPECT_EQ(of("conv2d_fprop 2x8x300x64 k=64 r=1 s=3 pad=0,130 dilation=1,100 a=f16"),
            "A: expected a first tap from its first pixel by -128 to 127 pixels along width, got "
            "-130");
  EXPECT_EQ(of("conv2d_fprop 2x8x300x64 k=64 r=1 s=3 pad=0,129 dilation=1,128 a=f16"),
            "A: expected taps that reach over at most 256 pixels along width, got 257");
  EXPECT_EQ(of("conv2d_fprop 2x300x8x64 k=64 r=3 s=1 pad=0:129,0 a=f16"), "");
  EXPECT_EQ(of("conv2d_fprop 2x300x8x64 k=64 r=3 s=1 pad=0:130,0 a=f16"),
            "A: expected a first tap from its last pixel by -128 to 127 pixels along height, got "
            "128");
  EXPECT_EQ(of("conv1d_fprop 2x3000x64 k=64 s=3 pad=1000 dilation=900 a=f16"), "");
  EXPECT_EQ(
      of("conv3d_fprop 2x40x8x8x64 k=64 t=3 r=1 s=1 pad=17,0,0 a=f16"),
      "A: expected a first tap from its first pixel by -16 to 15 pixels along depth, got -17");
  EXPECT_EQ(of("conv2d_fprop 2x8x8x16 k=64 r=3 s=3 pad=1 a=f16/ld=20"),
            "A: expected alignment in bytes of 16, got 8");
  // The first layer of a network.
  const char* const stem = "conv2d_fprop 2x224x224x3 k=64 r=7 s=7 pad=3 stride=2 a=f16";
  EXPECT_EQ(
      of(stem),
      "A: expected channels of a pixel in units of 16 bytes, which TMA copies, got 3 channels "
      "of 6 bytes (sm80 copies any number)");
  EXPECT_EQ(reason_of(parse_problem(stem).problem, {"sm80", hopper.device}), "");
  EXPECT_EQ(
      of("conv2d_wgrad 2x8x8x12 k=64 r=3 s=3 pad=1 a=f16"),
      "B: expected channels of a pixel in units of 16 bytes, which TMA copies, got 12 channels "
      "of 24 bytes (sm80 copies any number)");
  EXPECT_EQ(of("conv2d_fprop 2x8x8x48 k=64 r=3 s=3 pad=1 groups=2 a=f16"),
            "A: expected channels of a group in multiples of 64, got 24");
  EXPECT_EQ(of("conv2d_dgrad 2x8x8x64 k=48 r=3 s=3 pad=1 groups=2 a=bf16"),
            "A: expected channels of a group in multiples of 64, got 24");
  EXPECT_EQ(of("conv2d_wgrad 2x8x8x96 k=64 r=3 s=3 pad=1 a=bf16 c=bf16 beta=1"),
            "C: expected none for a wgrad whose taps have 96 channels, no multiple of 64, got a "
            "tensor");
  EXPECT_EQ(
      of("conv2d_wgrad 2x8x8x4 k=64 r=3 s=3 pad=1 a=f32 out=bf16 math=tf32"),
      "out: expected channels in units of 16 bytes for a wgrad whose taps have 4 channels, no "
      "multiple of 32, got 8 bytes at an alignment of 8");
  EXPECT_EQ(of("conv2d_wgrad 2x8x8x64 k=64 r=3 s=3 a=f16/strides=10000,800,80"),
            "A: expected pixels at one distance, got other strides");
  EXPECT_EQ(of("conv2d_fprop 2x8x8x64 k=64 r=3 s=3 pad=1 a=f64"),
            "types: expected A and B both float16 or bfloat16, 8-bit integers with int32 "
            "accumulators, 8-bit floats, float32 with math=tf32, tf32x3, bf16x3, bf16x6 or bf16x9, "
            "or codes of 4 or 8 bits beside float16 or bfloat16, got float64 and float64 with "
            "accumulators of float64 and math=native");
}

// The first kernel for a common layer uses tensor cores.
TEST(ConvolutionOnHopper, tensor_cores_are_first) {
  for (const char* const text : {"conv2d_fprop 32x56x56x64 k=64 r=3 s=3 pad=1 a=bf16",
                                 "conv2d_dgrad 32x56x56x64 k=64 r=3 s=3 pad=1 a=bf16",
                                 "conv2d_wgrad 32x56x56x64 k=64 r=3 s=3 pad=1 a=bf16"}) {
    const auto kernels = get_kernels(parse_problem(text).problem, *find_device_info("h200"));
    ASSERT_FALSE(kernels.empty());
    EXPECT_EQ(kernels.front().family().name(), "sm90") << text;
  }
}

}  // namespace
}  // namespace gemmery
