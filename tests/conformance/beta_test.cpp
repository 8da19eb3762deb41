// SPDX-License-Identifier: Apache-2.0
// Runs kernels with a C for all kinds of alpha and beta, found once: every family, on the CPU and
// on an emulated GPU. If beta is 0, C is NaN.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include <gemmery/gemmery.hpp>

#include "api/trial.hpp"
#include "jit/nvrtc.hpp"
#include "tests/conformance/random_source.hpp"

namespace gemmery::conformance {
namespace {

struct Scalars {
  double alpha, beta;
};
constexpr Scalars all_scalars[] = {{0.5, 0.5}, {1, 0}, {0, 1}, {0, 0}, {1, 1}};

// The first kernel of every family that discovery offers.
std::vector<Kernel> one_of_each_family(const GemmProblem& problem, const DeviceInfo& device) {
  std::vector<Kernel> kernels;
  std::set<std::string_view> families;
  for (const Kernel& kernel : get_kernels(problem, device))
    if (families.insert(kernel.family().name()).second) kernels.push_back(kernel);
  return kernels;
}

void run_with_all_scalars(const std::string& line, Device device, std::size_t least_families) {
  api::Trial trial{.line = parse_problem(line),
                   .options = {.seed = test_seed() | 1, .device = device}};
  const auto kernels = one_of_each_family(trial.line.problem, device_info(device));
  EXPECT_GE(kernels.size(), least_families) << line;
  for (const Kernel& kernel : kernels)
    for (const Scalars scalars : all_scalars) {
      trial.line.alpha = scalars.alpha;
      trial.line.beta = scalars.beta;
      const VerifyReport report = api::run_trial(trial, kernel);
      EXPECT_TRUE(report.passed) << kernel.name() << "\n"
                                 << to_string(trial.line) << "\n"
                                 << report.first_failure;
    }
}

TEST(Beta, kernels_with_c_serve_every_beta_on_the_cpu) {
  for (const char* const line :
       {"gemm 33x40x50 a=f32 c=f32", "gemm 20x24x64x2 a=bf16 c=f32[n]",
        "gemm 17x9x30 a=f64 c=f64:c", "gemm 32x48x64 a=s8 b=u8 out=s32 c=s32",
        "gemm 16x16x0 a=f32 c=f32"}) {
    run_with_all_scalars(line, Device::cpu(), 2);  // at least the reference and the library's loops
  }
}

TEST(Beta, kernels_with_c_serve_every_beta_on_a_gpu) {
  if (!jit::compiler_status().found) GTEST_SKIP() << "no NVRTC on this machine";
  const Device device = parse_device("emulated:h200").value();
  run_with_all_scalars("gemm 70x136x72 a=bf16 c=bf16", device, 2);
  run_with_all_scalars("gemm 64x64x64 a=f16 out=f32 c=f32", device, 2);
  run_with_all_scalars("gemm 33x17x20 a=f32 c=f32[m]", device, 1);
}

TEST(Beta, a_prepared_launch_goes_to_zero_and_back) {
  float a = 2, b = 3, c = 5, out = 0;
  const GemmArguments arguments({&a, DType::float32, {1, 1}}, {&b, DType::float32, {1, 1}},
                                {&out, DType::float32, {1, 1}},
                                {.c = Tensor(&c, DType::float32, {1, 1}), .alpha = 1, .beta = 1});
  for (const Kernel& kernel : get_kernels(arguments)) {
    PreparedLaunch launch = kernel.compile(arguments).bind(arguments);
    for (const Scalars scalars : {Scalars{1, 1}, {1, 0}, {0, 1}, {2, 0.5}}) {
      launch.set_scalars(scalars.alpha, scalars.beta);
      launch.launch(Stream::cpu());
      EXPECT_EQ(out, scalars.alpha * 6 + scalars.beta * 5) << kernel.name();
    }
  }
}

}  // namespace
}  // namespace gemmery::conformance
