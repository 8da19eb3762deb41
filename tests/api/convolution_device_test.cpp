// SPDX-License-Identifier: Apache-2.0
// Convolutions by kernels of GPUs, on emulated devices: awkward geometries and random ones against
// the bounds, with every access checked.
#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/convolution_cases.hpp"
#include "tests/support/naive_convolution.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery {
namespace {

using tests::ConvCase;
using tests::Draw;
using tests::HeldTensor;
using tests::kinds;
using tests::Types;

constexpr Types f32{DType::float32, DType::float32};

GemmProblem problem_of(const ConvCase& conv, ConvKind kind, Types types, std::int64_t gap = 0) {
  const auto [a, b, out] = tests::shapes_of(conv, kind);
  // Taps of filters are adjacent.
  const HeldTensor of_a(types.operands, a, gap);
  const HeldTensor of_b(types.operands, b, kind == ConvKind::fprop ? 0 : gap);
  const HeldTensor of_out(types.out, out, kind == ConvKind::wgrad ? 0 : gap);
  return ConvArguments(kind, of_a.view(), of_b.view(), of_out.view(), conv.settings()).problem();
}

std::vector<RankedKernel> kernels_on(const GemmProblem& problem, Device device) {
  return get_kernels(problem, device_info(device), {.providers = {"templates"}});
}

void expect_right(const ProblemLine& line, const Kernel& kernel, Device device) {
  const VerifyReport report =
      verify(line, kernel, {.seed = tests::random_seed(), .device = device});
  ASSERT_TRUE(report.passed) << to_string(line) << " by " << kernel.name() << ", seed "
                             << report.seed << ": " << report.first_failure;
}

// A convolution that is no plain GEMM, and no strided dgrad, which has kernels of the CPU alone.
bool is_served(const GemmProblem& problem) {
  return problem.convolution->kind != ConvKind::dgrad ||
         problem.convolution->stride == Spatial{1, 1, 1};
}

TEST(ConvolutionOnDevices, awkward_geometries_are_within_the_bounds) {
  constexpr double most_flops = 4e6;
  const Device device = *parse_device("emulated:h200");
  Draw draw(tests::random_seed(), 1);
  int count = 0;
  const auto run = [&](const char* text) {
    for (const ConvKind kind : kinds) {
      const GemmProblem problem = problem_of(tests::read_row(text).conv, kind, f32);
      if (problem.flops() > most_flops || !is_served(problem)) continue;
      const auto kernels = kernels_on(problem, device);
      ASSERT_FALSE(kernels.empty()) << to_string(problem);
      expect_right({.problem = problem},
                   kernels[static_cast<std::size_t>(draw.below(std::ssize(kernels)))], device);
      ++count;
    }
  };
  for (const char* const text : tests::tiny_convolutions) run(text);
  for (const char* const text : tests::strided_convolutions) run(text);
  for (const char* const text : tests::asymmetric_convolutions) run(text);
  for (const char* const text : tests::channels_convolutions) run(text);
  for (const char* const text : tests::grouped_convolutions) run(text);
  for (const char* const text : tests::limits_convolutions) run(text);
  for (const char* const text : tests::empty_convolutions) run(text);
  EXPECT_GT(count, 60);
}

TEST(ConvolutionOnDevices, random_problems_are_within_the_bounds) {
  Draw draw(tests::random_seed(), 1);
  const int problems = std::getenv("GEMMERY_SOAK") != nullptr ? 600 : 60;
  const std::vector<Device> devices{*parse_device("emulated:h200"), *parse_device("emulated:a100")};
  int count = 0;
  while (count < problems) {
    const ConvCase conv = tests::draw_case(draw);
    const ConvKind kind = kinds[static_cast<std::size_t>(draw.below(3))];
    const Types types = tests::draw_types(draw);
    const GemmProblem problem = problem_of(conv, kind, types, draw.below(2) * draw.below(4));
    if (!is_served(problem)) continue;
    const Device device = devices[static_cast<std::size_t>(draw.below(std::ssize(devices)))];
    const auto kernels = kernels_on(problem, device);
    ASSERT_FALSE(kernels.empty()) << to_string(problem);
    ProblemLine line{.problem = problem};
    expect_right(line, kernels[static_cast<std::size_t>(draw.below(std::ssize(kernels)))], device);
    ++count;
  }
}

TEST(ConvolutionOnDevices, programs_broadcast_and_reduce) {
  const Device device = *parse_device("emulated:h200");
  for (const char* const text :
       {"conv2d_fprop 2x7x6x8 k=12 r=3 s=3 pad=1 a=f32 epilogue=\"D = relu(accum + bias) + "
        "residual; "
        "sums = sum(D)\" bias=f32[n] residual=f32 sums=f32[n]",
        "conv2d_fprop 3x7x6x8 k=12 r=3 s=3 pad=1 batch=images a=f16 epilogue=\"D = accum * scale\" "
        "scale=f32[l,n]",
        "conv2d_fprop 2x7x6x8 k=12 r=3 s=3 pad=1 groups=2 a=f32 epilogue=\"D = accum + bias\" "
        "bias=f32[l,n]",
        "conv2d_wgrad 2x7x6x8 k=12 r=3 s=3 pad=1 a=f32 c=f32 beta=1",
        "conv2d_dgrad 2x7x6x8 k=12 r=3 s=3 pad=1 a=f32 c=f32 alpha=2 beta=-1"}) {
    const ProblemLine line = parse_problem(text);
    const auto kernels = kernels_on(line.problem, device);
    ASSERT_FALSE(kernels.empty()) << text;
    expect_right(line, kernels.front(), device);
  }
}

TEST(ConvolutionOnDevices, names_read_back) {
  int count = 0;
  for (const char* const kind : {"fprop", "dgrad", "wgrad"}) {
    const auto line =
        parse_problem(std::string("conv2d_") + kind + " 2x8x8x16 k=16 r=3 s=3 pad=1 a=f16");
    for (const Kernel& kernel : get_kernels(line.problem, *find_device_info("h200"))) {
      const auto found = find_kernel(kernel.name());
      ASSERT_TRUE(found) << kernel.name();
      EXPECT_EQ(*found, kernel);
      ++count;
    }
  }
  EXPECT_GT(count, 10);
}

TEST(ConvolutionOnDevices, what_is_not_served_is_refused_by_name) {
  const auto reason_of = [](const char* text) {
    for (const Reason& reason :
         explain(parse_problem(text).problem, *find_device_info("h200")).reasons)
      if (reason.family == "simt") return reason.failed;
    return std::string("no reason");
  };
  EXPECT_EQ(reason_of("conv2d_dgrad 2x8x8x8 k=8 r=3 s=3 pad=1 stride=2 a=f16"),
            "stride: expected 1 for dgrad, got a larger one");
  EXPECT_EQ(reason_of("conv2d_fprop 2x8x8x8 k=8 r=3 s=3 a=f16 b=f16/ld=9"),
            "B: expected filters whose taps and channels are adjacent, got other strides");
  EXPECT_EQ(reason_of("conv2d_wgrad 2x8x8x8 k=8 r=3 s=3 a=f16/strides=2000,100,10"),
            "A: expected pixels at one distance, got other strides");
}

}  // namespace
}  // namespace gemmery
