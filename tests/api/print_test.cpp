// SPDX-License-Identifier: Apache-2.0
// `<<` of types with a text form, and the facts of devices by name.
#include <gtest/gtest.h>
#include <gemmery/describe.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/elementwise.hpp>
#include <gemmery/error.hpp>
#include <gemmery/print.hpp>

#include <sstream>
#include <string>
#include <vector>

namespace gemmery {
namespace {

template <class Value>
std::string printed(const Value& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(Print, gives_the_text_of_values_and_the_names_of_enumerators) {
  EXPECT_EQ(printed(Device::cuda(1)), "cuda:1");
  EXPECT_EQ(printed(Target{90, 'a'}), "sm_90a");
  EXPECT_EQ(printed(Tensor(nullptr, DType::float32, {2, 3})),
            "float32 (2, 3) strides (3, 1) on cpu");
  EXPECT_EQ(printed(DType::bfloat16), "bfloat16");
  EXPECT_EQ(printed(Math::tf32), "tf32");
  EXPECT_EQ(printed(describe::Element::float16), "float16");
  const ProblemLine line = parse_problem("gemm 3x4x5 a=f64 beta=2 c=f64");
  EXPECT_EQ(printed(line), to_string(line));
  EXPECT_EQ(printed(line.problem), to_string(line.problem));
}

TEST(Print, gives_names_of_kernels_and_reasons) {
  const GemmProblem problem = parse_problem("gemm 8x8x8 a=f32").problem;
  const DeviceInfo& cpu = device_info("cpu");
  const RankedKernel kernel = get_kernels(problem, cpu).front();
  EXPECT_EQ(printed(kernel), kernel.name());
  EXPECT_EQ(printed(kernel.supports(problem, cpu)), "supported");
  const Status refused = kernel.supports(parse_problem("gemm 8x8x8 a=f64").problem, cpu);
  EXPECT_EQ(printed(refused), refused.error());
  EXPECT_EQ(printed(explain(problem, cpu)), to_string(explain(problem, cpu)));
  EXPECT_TRUE(printed(verify({.problem = problem}, kernel)).starts_with("passed: "));
}

TEST(Print, gives_arguments_as_the_line_that_describes_them) {
  std::vector<float> memory(64 * 3);
  const Tensor matrix(memory.data(), DType::float32, {8, 8});
  const GemmArguments scaled(matrix, matrix, {memory.data() + 64, DType::float32, {8, 8}},
                             {.alpha = 0.5});
  EXPECT_EQ(printed(scaled), "gemm 8x8x8 a=f32 alpha=0.5");
  EXPECT_EQ(parse_problem(printed(scaled)), problem_line(scaled));
  const GemmArguments fused(
      matrix, matrix, {memory.data() + 64, DType::float32, {8, 8}},
      {.epilogue = EpilogueArguments("D = slope * accum", {{"slope", 0.25}})});
  EXPECT_EQ(parse_problem(printed(fused)), problem_line(fused)) << printed(fused);
  const ElementwiseArguments elementwise({memory.data(), DType::float32, {8, 8}},
                                         EpilogueArguments("D = 2 * x", {{"x", matrix}}));
  EXPECT_EQ(printed(elementwise), printed(elementwise.as_gemm()));
}

TEST(Print, gives_metadata_a_line_for_each_question) {
  const Metadata metadata =
      find_kernel("simt1_gemm_f32r16_bf16c2_f32x4_acc-f32_128x128x8_8x8_k1_s4")->metadata();
  const std::string text = printed(metadata);
  EXPECT_TRUE(text.starts_with(metadata.kernel_name + "\n  family    templates/simt for ")) << text;
  EXPECT_NE(
      text.find(
          "\n  operands  A float32 (row layout, aligned to 16 bytes), B bfloat16 (column layout, "
          "aligned to 2 bytes), out float32 (any layout, aligned to 4 bytes), accumulators "
          "float32\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find(" stages=4"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\n  epilogue  D = alpha * accum + beta * C")) << text;
}

TEST(Print, gives_a_measurement_with_its_spread) {
  Measurement measurement;
  measurement.median_us = 93.04;
  measurement.flops_per_second = 45.08e9;
  measurement.samples = 11;
  measurement.quartile_low_us = 90.2;
  measurement.quartile_high_us = 97.9;
  EXPECT_EQ(printed(measurement),
            "93 us, 45.1 GFLOP/s (median of 11 samples, quartiles 90.2 us to 97.9 us)");
}

TEST(Print, gives_times_and_rates_in_units_that_fit) {
  Measurement measurement;
  measurement.median_us = 15987;
  measurement.quartile_low_us = 999.6;
  measurement.quartile_high_us = 2.5e6;
  measurement.flops_per_second = 684e12;
  EXPECT_EQ(printed(measurement),
            "16 ms, 684 TFLOP/s (median of 0 samples, quartiles 1 ms to 2.5 s)");
}

TEST(Print, says_what_a_device_is_and_how_a_verification_ended) {
  EXPECT_EQ(printed(device_info("h200")), "NVIDIA H200 (sm_90, 132 multiprocessors)");
  VerifyReport passed;
  passed.passed = true;
  passed.elements = 64;
  passed.method = "intervals";
  passed.seed = 7;
  EXPECT_EQ(
      printed(passed),
      "passed: 0 of 64 elements outside, worst error 0 of what is allowed (intervals, seed 7)");
  VerifyReport failed = passed;
  failed.passed = false;
  failed.mismatches = 2;
  failed.first_failure = "D[0, 1]: 2, expected 3";
  EXPECT_TRUE(printed(failed).starts_with("FAILED: 2 of 64")) << printed(failed);
  EXPECT_TRUE(printed(failed).ends_with("; D[0, 1]: 2, expected 3")) << printed(failed);
}

TEST(DeviceInfo, is_found_by_the_name_of_a_known_device_or_of_one_here) {
  EXPECT_EQ(device_info("h200"), find_device_info("h200").value());
  EXPECT_EQ(device_info("cpu"), device_info(Device::cpu()));
  EXPECT_EQ(&device_info("h200"), &device_info("h200"));
}

TEST(DeviceInfo, refuses_an_unknown_name_with_those_that_exist) {
  try {
    (void)device_info("h2000");
    FAIL() << "an unknown device was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("\"h2000\""), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("h200, "), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace gemmery
