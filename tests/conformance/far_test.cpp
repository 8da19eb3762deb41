// SPDX-License-Identifier: Apache-2.0
// Every GPU family with operands that span more than 2^32 elements, each operand and along each
// extent, on emulated devices. GEMMERY_SOAK=1 runs every design that discovery lists for a family.
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include <fmt/format.h>

#include "tests/conformance/far_trial.hpp"
#include "tests/conformance/suite.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery::conformance {
namespace {

// The first kernel of each family; in a soak the first of each schedule, cluster, split and copy.
std::vector<Kernel> kernels_for(const GemmArguments& arguments) {
  std::vector<Kernel> chosen;
  std::set<std::string> seen;
  for (const Kernel& kernel : get_kernels(arguments)) {
    const Metadata metadata = kernel.metadata();
    std::string design = metadata.kernel_class;
    if (is_soak())
      for (const char* const field : {"schedule", "cluster", "split_k", "repacked"})
        design += " " + std::string(metadata.design_value(field));
    if (seen.insert(design).second) chosen.push_back(kernel);
  }
  return chosen;
}

class FarOperands : public tests::WithNvrtc {
 protected:
  void run_all(const FarExtents& extents, DType dtype) {
    const std::uint64_t seed = test_seed();
    Choices choices(seed);
    const Device device = parse_device("emulated:h200").value();
    std::multiset<std::string> families;
    for (const FarCase& far : far_cases()) {
      if (extents.k == 0 && far.operand < FarOperand::out) continue;
      const FarTrial trial(far, extents, dtype, device, choices);
      for (const Kernel& kernel : kernels_for(trial.arguments())) {
        families.insert(std::string(kernel.family().name()));
        EXPECT_EQ(trial.run(kernel), "") << far.name << ", " << kernel.name() << ", seed " << seed;
      }
    }
    for (const auto* family : {"simt", "sm80", "sm90", "skinny", "elementwise"})
      std::cout << families.count(family) << " runs of " << family << "\n";
  }
};

TEST_F(FarOperands, of_16_bits) { run_all({.m = 72, .n = 40, .k = 72, .l = 2}, DType::bfloat16); }

TEST_F(FarOperands, of_32_bits) { run_all({.m = 40, .n = 24, .k = 40, .l = 2}, DType::float32); }

TEST_F(FarOperands, of_no_product) { run_all({.m = 72, .n = 40, .k = 0, .l = 2}, DType::float32); }

TEST_F(FarOperands, of_few_rows) { run_all({.m = 3, .n = 40, .k = 72, .l = 2}, DType::bfloat16); }

}  // namespace
}  // namespace gemmery::conformance
