// SPDX-License-Identifier: Apache-2.0
// `<<` of types with a text form, and the facts of devices by name.
#include <gtest/gtest.h>
#include <gemmery/describe.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/error.hpp>
#include <gemmery/print.hpp>

#include <sstream>
#include <string>

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
