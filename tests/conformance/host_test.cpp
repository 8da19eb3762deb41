// SPDX-License-Identifier: Apache-2.0
// Runs the suite on every kernel that discovery offers for the CPU. GEMMERY_SOAK=1 runs 100,000
// cases.
#include <gtest/gtest.h>

#include <iostream>

#include <gemmery/gemmery.hpp>

#include "platform/parallel.hpp"
#include "tests/conformance/suite.hpp"

namespace gemmery::conformance {
namespace {

std::vector<Kernel> available_kernels() {
  std::vector<Kernel> kernels;
  for_each_kernel(
      [&](const Kernel& kernel) {
        if (kernel.family().availability() && kernel.family().device_info(Device::cpu()) != nullptr)
          kernels.push_back(kernel);
      },
      {.target = Target::cpu()});
  return kernels;
}

TEST(HostConformance, every_kernel_is_right_on_random_problems) {
  const SuiteReport report = run_suite({.kernels = available_kernels(),
                                        .cases = is_soak() ? 100000 : 1000,
                                        .seed = test_seed(),
                                        .threads = platform::thread_count(),
                                        .limits = {.products = 1 << 17, .device = Device::cpu()}});
  std::cout << to_string(report);
  EXPECT_EQ(report.mismatches(), 0);
  EXPECT_FALSE(report.of_family.empty());
}

// Sizes 0, 1, prime and skewed, up to 300 groups, in all forms. Sizes are poisoned until the work
// runs; elements of no group are always poisoned.
TEST(HostConformance, every_kernel_is_right_on_random_groups) {
  const SuiteReport report =
      run_suite({.kernels = available_kernels(),
                 .cases = is_soak() ? 30000 : 600,
                 .seed = test_seed(),
                 .threads = platform::thread_count(),
                 .limits = {.products = 1 << 17, .device = Device::cpu(), .groups = true}});
  std::cout << to_string(report);
  EXPECT_EQ(report.mismatches(), 0);
}

// The same with sizes at which blocking and threads are used.
TEST(HostConformance, every_kernel_is_right_on_larger_problems) {
  const SuiteReport report = run_suite({.kernels = available_kernels(),
                                        .cases = is_soak() ? 2000 : 40,
                                        .seed = test_seed(),
                                        .threads = 1,
                                        .limits = {.products = 1 << 24, .device = Device::cpu()}});
  std::cout << to_string(report);
  EXPECT_EQ(report.mismatches(), 0);
}

}  // namespace
}  // namespace gemmery::conformance
