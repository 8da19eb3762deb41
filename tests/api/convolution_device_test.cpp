// SPDX-License-Identifier: Apache-2.0
// Convolutions by GPU kernels on emulated devices: unusual geometries and random ones, compared
// with their bounds, with every access checked.
#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
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
using tests::Types;

constexpr Products all_products[] = {
    {DType::float16, DType::float16},
    {DType::bfloat16, DType::float32},
    {DType::float32, DType::float32, Math::tf32},
    {DType::float32, DType::float32, Math::bf16x3},
    {DType::float64, DType::float64},
    {DType::int8, DType::int32},
    {DType::uint8, DType::int32},
};

constexpr Served simt{"simt", "emulated:h200"};
constexpr Served sm80{"sm80", "emulated:a100"};

Products draw_products(const Served& served, Draw& draw) {
  if (served.family == sm80.family)
    return all_products[static_cast<std::size_t>(draw.below(std::ssize(all_products)))];
  const Types types = tests::draw_types(draw);
  return {types.operands, types.out};
}

GemmProblem problem_of(const ConvCase& conv, ConvKind kind, const Products& products,
                       std::int64_t gap = 0) {
  // Taps of filters are contiguous.
  return tests::problem_of(
      conv, kind, products,
      {.a = gap, .b = kind == ConvKind::fprop ? 0 : gap, .out = kind == ConvKind::wgrad ? 0 : gap});
}

class ConvolutionOnDevices : public testing::TestWithParam<Served> {};

class NastyConvolutionsOnDevices
    : public testing::TestWithParam<std::tuple<Served, tests::NastyConvolution>> {
 protected:
  const Served& served() const { return std::get<0>(GetParam()); }
  const tests::NastyConvolution& nasty() const { return std::get<1>(GetParam()); }
};

// Every kind has kernels; a short run runs one in eight of the small ones.
TEST_P(NastyConvolutionsOnDevices, all_kinds_are_within_the_bounds) {
  static Draw draw(tests::random_seed(), 1);
  for (const ConvKind kind : kinds) {
    if (nasty().is_refused()) continue;
    const Products products = draw_products(served(), draw);
    const GemmProblem problem = tests::imaginary_problem(nasty().conv(), kind, products);
    EXPECT_FALSE(kernels_of(problem, served()).empty())
        << to_string(problem) << ": " << reason_of(problem, served());
    if (tests::is_run(problem, nasty(), draw, 8))
      expect_right_by_any({.problem = problem}, served(), draw);
  }
}

std::string name_of(const testing::TestParamInfo<std::tuple<Served, tests::NastyConvolution>>& it) {
  const auto& [served, nasty] = it.param;
  return std::string(served.family) + "_" + nasty.name;
}

INSTANTIATE_TEST_SUITE_P(, NastyConvolutionsOnDevices,
                         testing::Combine(testing::Values(simt, sm80),
                                          testing::ValuesIn(tests::nasty_convolutions())),
                         name_of);

TEST_P(ConvolutionOnDevices, random_problems_are_within_the_bounds) {
  Draw draw(tests::random_seed(), 1);
  const int problems = is_soak() ? 300 : 10;
  int count = 0;
  while (count < problems) {
    ConvCase conv = tests::draw_case(draw);
    // In half of the problems accesses have several channels.
    const std::int64_t unit = std::int64_t{1} << draw.below(5);
    conv.channels *= unit;
    conv.filters *= unit;
    const ConvKind kind = kinds[static_cast<std::size_t>(draw.below(3))];
    const GemmProblem problem = problem_of(conv, kind, draw_products(GetParam(), draw),
                                           draw.below(2) * unit * draw.below(4));
    if (problem.flops() > 1e7) continue;
    ++count;
    if (kernels_of(problem, GetParam()).empty() && tests::is_plain_gemm(problem, GetParam()))
      continue;
    expect_right_by_any({.problem = problem}, GetParam(), draw);
  }
}

TEST_P(ConvolutionOnDevices, programs_and_addends_are_those_of_a_product) {
  Draw draw(tests::random_seed(), 1);
  for (const char* const text :
       {"conv2d_fprop 2x7x6x8 k=12 r=3 s=3 pad=1 a=f16 out=f32 epilogue=\"D = relu(accum + bias) + "
        "residual; sums = sum(D)\" bias=f32[n] residual=f32 sums=f32[n]",
        "conv2d_fprop 3x7x6x8 k=12 r=3 s=3 pad=1 batch=images a=f16 epilogue=\"D = accum * scale\" "
        "scale=f32[l,n]",
        "conv2d_fprop 2x7x6x8 k=12 r=3 s=3 pad=1 groups=2 a=bf16 epilogue=\"D = accum + bias\" "
        "bias=f32[l,n]",
        "conv2d_wgrad 2x7x6x8 k=12 r=3 s=3 pad=1 a=f16 out=f32 c=f32 beta=1",
        "conv2d_dgrad 2x7x6x8 k=12 r=3 s=3 pad=1 a=f16 out=f32 c=f32 alpha=2 beta=-1",
        "conv2d_dgrad 2x7x6x8 k=12 r=3 s=3 pad=1 a=f16 c=f16 alpha=0 beta=-1",
        "conv2d_fprop 2x7x6x16 k=24 r=3 s=3 pad=1 a=s8 out=s8 c=s8 alpha=0.02 beta=1",
        "conv2d_fprop 2x7x6x8 k=12 r=3 s=3 pad=1 a=bf16 mode=convolution alpha=0"})
    expect_right_by_any(parse_problem(text), GetParam(), draw);
}

TEST_P(ConvolutionOnDevices, names_read_back) {
  int count = 0;
  for (const char* const text :
       {"conv2d_fprop 2x8x8x16 k=16 r=3 s=3 pad=1 a=f16", "conv1d_dgrad 2x8x16 k=16 s=3 pad=1 a=s8",
        "conv3d_wgrad 2x8x8x8x16 k=16 t=2 r=3 s=3 pad=1 a=bf16"}) {
    for (const Kernel& kernel : kernels_of(parse_problem(text).problem, GetParam())) {
      const auto found = find_kernel(kernel.name());
      ASSERT_TRUE(found) << kernel.name();
      EXPECT_EQ(*found, kernel);
      ++count;
    }
  }
  EXPECT_GT(count, 5);
}

TEST_P(ConvolutionOnDevices, what_is_not_served_is_refused_by_name) {
  const auto of = [](const char* text) {
    return reason_of(parse_problem(text).problem, GetParam());
  };
  EXPECT_EQ(of("conv2d_fprop 2x8x8x8 k=8 r=3 s=3 a=f16 b=f16/ld=9"),
            "B: expected filters whose taps and channels are adjacent, got other strides");
  EXPECT_EQ(of("conv2d_wgrad 2x8x8x8 k=8 r=3 s=3 a=f16/strides=2000,100,10"),
            "A: expected pixels at one distance, got other strides");
  const std::string strided =
      "conv2d_dgrad 2x8x8x8 k=8 r=3 s=3 pad=1 stride=2 a=f16 epilogue=\"D = "
      "accum; sums = sum(D)\" sums=f32";
  if (std::string_view(GetParam().family) == "simt")
    EXPECT_EQ(of((strided + "[n]").c_str()),
              "epilogue: expected no reductions beside a dgrad with a stride, got some");
  else
    EXPECT_EQ(of((strided + "[m]").c_str()),
              "epilogue: expected reductions to a value of each channel, image or group, or of "
              "all, beside a dgrad with a stride, got a value of each pixel");
}

// Phases with many, few and no taps, in every layout of their rows.
TEST_P(ConvolutionOnDevices, strided_gradients_are_within_the_bounds) {
  Draw draw(tests::random_seed(), 1);
  for (const char* const text :
       {"conv2d_dgrad 2x15x14x16 k=24 r=3 s=3 pad=1 stride=2 a=f16",
        "conv2d_dgrad 2x14x14x16 k=24 r=1 s=1 stride=2 a=f16 out=f32 c=f32 beta=2",
        "conv2d_dgrad 3x16x16x8 k=16 r=2 s=5 pad=1:0,0:1 stride=4,2 dilation=2,4 a=bf16",
        "conv2d_dgrad 1x20x20x8 k=8 r=3 s=3 pad=2 stride=4 dilation=6 a=f16 mode=convolution",
        "conv2d_dgrad 1x30x31x6 k=10 r=3 s=3 pad=1 stride=9 a=f16 groups=2",
        "conv1d_dgrad 2x33x16 k=16 s=5 pad=2 stride=3 a=s8 out=s32",
        "conv3d_dgrad 1x5x6x7x8 k=8 t=2 r=3 s=3 pad=1 stride=2,3,2 a=f16 batch=images",
        "conv2d_dgrad 2x15x14x16 k=24 r=3 s=3 pad=1 stride=2 a=f16 out=f32 epilogue=\"D = "
        "relu(accum + bias) + residual\" bias=f32[n] residual=f32",
        "conv2d_dgrad 2x15x14x16 k=24 r=3 s=3 pad=1 stride=2 a=f16 alpha=0 c=f16 beta=1"})
    expect_right_by_any(parse_problem(text), GetParam(), draw);
}

INSTANTIATE_TEST_SUITE_P(Families, ConvolutionOnDevices, testing::Values(simt, sm80),
                         [](const auto& tested) { return std::string(tested.param.family); });

// A wgrad has few tiles, whose pixels are split over blocks; the order of sums is fixed.
TEST(ConvolutionOnTensorCores, splits_cover_all_pixels_and_repeat_bit_for_bit) {
  Draw draw(tests::random_seed(), 1);
  for (const char* const text : {"conv2d_wgrad 3x20x20x16 k=24 r=3 s=3 pad=1 a=f16 out=f32",
                                 "conv2d_fprop 1x9x9x64 k=64 r=3 s=3 pad=1 a=f16"}) {
    const ProblemLine line = parse_problem(text);
    std::vector<Kernel> parallel, stream;
    for (const Kernel& kernel : kernels_of(line.problem, sm80)) {
      if (kernel.name().find("_parallel") != std::string::npos) parallel.push_back(kernel);
      if (kernel.name().find("_stream") != std::string::npos) stream.push_back(kernel);
    }
    EXPECT_FALSE(parallel.empty()) << text;
    for (const auto& kernels : {parallel, stream}) {
      if (kernels.empty()) continue;
      const Kernel& kernel = kernels[static_cast<std::size_t>(draw.below(std::ssize(kernels)))];
      expect_right(line, kernel, sm80);
      EXPECT_TRUE(kernel.metadata().deterministic);
    }
  }
}

// Each phase has tiles. Some of them are beyond its last row and contribute nothing.
TEST(ConvolutionOnTensorCores, strided_gradients_reduce_over_all_phases) {
  Draw draw(tests::random_seed(), 1);
  for (const char* const text :
       {"conv2d_dgrad 2x15x14x16 k=24 r=3 s=3 pad=1 stride=2 a=f16 out=f32 epilogue=\"D = accum + "
        "bias; sums = sum(D); peak = max(abs(D))\" bias=f32[n] sums=f32[n] peak=f32[1]",
        "conv2d_dgrad 2x30x31x6 k=10 r=3 s=3 pad=1 stride=9 a=f16 groups=2 epilogue=\"D = accum * "
        "2; "
        "sums = sum(D); least = min(D)\" sums=f32[l,n] least=f32[n]",
        "conv3d_dgrad 3x5x6x7x8 k=8 t=2 r=3 s=3 pad=1 stride=2,3,2 a=bf16 batch=images "
        "epilogue=\"D = "
        "accum; sums = sum(D); peak = amax(D)\" sums=f32[l,n] peak=f32[l,1]"})
    expect_right_by_any(parse_problem(text), sm80, draw);
}

// 8-bit floats, from sm_89 on.
TEST(ConvolutionOnTensorCores, narrow_floats_run_where_the_chip_has_them) {
  Draw draw(tests::random_seed(), 1);
  for (const char* const text :
       {"conv2d_fprop 2x7x6x16 k=24 r=3 s=3 pad=1 a=e4m3 out=f16 math=fp8_fast",
        "conv2d_dgrad 2x7x6x16 k=24 r=3 s=3 pad=1 a=e5m2 out=f32 math=fp8_fast",
        "conv2d_wgrad 2x7x6x16 k=24 r=3 s=3 pad=1 a=e4m3 out=f32 math=fp8_fast"})
    expect_right_by_any(parse_problem(text), {"sm80", "emulated:h200"}, draw);
}

// The first kernel for a common layer uses tensor cores.
TEST(ConvolutionOnTensorCores, come_first) {
  for (const char* const text : {"conv2d_fprop 32x56x56x64 k=64 r=3 s=3 pad=1 a=bf16",
                                 "conv2d_dgrad 32x56x56x64 k=64 r=3 s=3 pad=1 a=f16",
                                 "conv2d_wgrad 32x56x56x64 k=64 r=3 s=3 pad=1 a=f16",
                                 "conv2d_fprop 32x224x224x3 k=64 r=7 s=7 pad=3 stride=2 a=f16"}) {
    const auto kernels = get_kernels(parse_problem(text).problem, *find_device_info("a100"));
    ASSERT_FALSE(kernels.empty());
    EXPECT_EQ(kernels.front().family().name(), "sm80") << text;
  }
}

}  // namespace
}  // namespace gemmery
