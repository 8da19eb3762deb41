// SPDX-License-Identifier: Apache-2.0
// Measurements: consistent figures, rotating operand sets, alternating kernels.
#include <gtest/gtest.h>

#include <gemmery/gemmery.hpp>

namespace gemmery {
namespace {

constexpr MeasureOptions quick{.samples = 5, .sample_ms = 1, .warmup_ms = 1};

std::vector<Kernel> cpu_kernels(const ProblemLine& line) {
  std::vector<Kernel> kernels;
  for (const RankedKernel& kernel : get_kernels(line.problem, device_info(Device::cpu())))
    kernels.push_back(kernel);
  return kernels;
}

void expect_consistent(const Measurement& m, const ProblemLine& line) {
  EXPECT_GT(m.minimum_us, 0);
  EXPECT_LE(m.minimum_us, m.quartile_low_us);
  EXPECT_LE(m.quartile_low_us, m.median_us);
  EXPECT_LE(m.median_us, m.quartile_high_us);
  EXPECT_LE(m.quartile_high_us, m.maximum_us);
  EXPECT_GE(m.runs_per_sample, 1);
  EXPECT_GE(m.buffer_sets, 2);
  EXPECT_NEAR(m.flops_per_second, line.problem.flops() / m.median_us * 1e6,
              1e-6 * m.flops_per_second);
  if (m.roofline_us > 0) {
    EXPECT_NEAR(m.roofline_share, m.roofline_us / m.median_us, 1e-9);
  }
}

TEST(Measure, gives_consistent_figures_on_the_cpu) {
  for (const char* const text :
       {"gemm 64x64x64 a=f32", "gemm 40x30x20 a=f64 c=f64 beta=1", "gemm 32x32x32x2 a=s8 out=s32",
        "gemm 16x16x16 a=bf16 b=bf16:c/align=2", "gemm 8x8x8 a=f32/strides=-8,1"}) {
    const ProblemLine line = parse_problem(text);
    const Measurement m = measure(line, cpu_kernels(line).front(), quick);
    SCOPED_TRACE(text);
    expect_consistent(m, line);
    EXPECT_EQ(m.samples, 5);
  }
}

TEST(Measure, takes_kernels_in_turn) {
  const ProblemLine line = parse_problem("gemm 48x48x48 a=f32");
  const std::vector<Kernel> kernels = cpu_kernels(line);
  const std::vector<Measurement> all = measure_interleaved(line, kernels, quick);
  ASSERT_EQ(all.size(), kernels.size());
  for (const Measurement& m : all) expect_consistent(m, line);
  EXPECT_TRUE(measure_interleaved(line, {}, quick).empty());
}

TEST(Measure, rotates_more_sets_the_smaller_the_operands) {
  const ProblemLine small = parse_problem("gemm 64x64x64 a=f32");
  const ProblemLine large = parse_problem("gemm 1024x1024x64 a=f32");
  const MeasureOptions options{.samples = 1, .sample_ms = 0.1, .warmup_ms = 0};
  EXPECT_GE(measure(small, cpu_kernels(small).front(), options).buffer_sets,
            measure(large, cpu_kernels(large).front(), options).buffer_sets);
}

TEST(Measure, measures_problems_without_work) {
  for (const char* const text : {"gemm 0x64x64 a=f32", "gemm 64x64x0 a=f32"}) {
    const ProblemLine line = parse_problem(text);
    const Measurement m = measure(line, cpu_kernels(line).back(), quick);
    EXPECT_EQ(m.flops_per_second, 0);
  }
}

TEST(Measure, refuses_a_kernel_of_another_problem) {
  const Kernel kernel = cpu_kernels(parse_problem("gemm 8x8x8 a=f32")).front();
  EXPECT_THROW((void)measure(parse_problem("gemm 8x8x8 a=f64"), kernel, quick), Error);
}

TEST(Measure, times_a_gpu_by_its_own_clock) {
  const auto gpus = devices();
  if (gpus.empty()) GTEST_SKIP() << "no GPU on this machine";
  const ProblemLine line = parse_problem("gemm 1024x1024x1024 a=f32");
  const auto kernels = get_kernels(line.problem, device_info(gpus.front()));
  ASSERT_FALSE(kernels.empty());
  const Measurement m =
      measure(line, kernels.front(),
              {.device = gpus.front(), .samples = 5, .sample_ms = 2, .warmup_ms = 5});
  expect_consistent(m, line);
  EXPECT_LT(m.roofline_share, 1.05);
}

}  // namespace
}  // namespace gemmery
