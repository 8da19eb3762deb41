// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/hopper_gemm.hpp"

#include <set>

#include "driver/driver.hpp"
#include "jit/nvrtc.hpp"

namespace gemmery::tests {
void HopperGemm::SetUp() {
  const jit::CompilerStatus compiler = jit::compiler_status();
  if (!compiler.found) GTEST_SKIP() << compiler.searched;
  const driver::DriverFinding finding = driver::find_driver(device().type);
  if (finding.driver == nullptr) GTEST_SKIP() << finding.reason;
  if (device().index >= finding.driver->device_count())
    GTEST_SKIP() << "there is no " << to_string(device());
  const Target target = device_info(device()).target;
  if (!runs_on(Target{90, 'a'}, target))
    GTEST_SKIP() << "sm90 kernels need sm_90a, this is " << to_string(target);
}

namespace {

// Splits through a workspace have separate tests, since captures in these tests have no workspace.
bool needs_no_workspace(const Kernel& kernel) {
  return kernel.metadata().design_value("split_k").find_first_not_of("0123456789") ==
         std::string_view::npos;
}

}  // namespace

std::vector<Kernel> sm90_kernels(const GemmArguments& arguments) {
  std::vector<Kernel> kernels;
  for (const RankedKernel& kernel : get_kernels(arguments)) {
    if (kernel.family().name() == "sm90" && needs_no_workspace(kernel)) kernels.push_back(kernel);
  }
  return kernels;
}

std::string design_class(const Kernel& kernel) {
  const Metadata metadata = kernel.metadata();
  return std::string(metadata.design_value("schedule")) + " " +
         std::string(metadata.design_value("cluster")) + " " +
         std::string(metadata.design_value("split_k"));
}

namespace {

// Splits of k, which discovery does not offer for the small problems of tests.
std::vector<Kernel> splits_like(const Kernel& kernel) {
  std::vector<Kernel> splits;
  for_each_kernel(
      [&](const Kernel& other) {
        if (other.family().name() == "sm90" && other.operands() == kernel.operands() &&
            other.metadata().design_value("split_k") != "1" && needs_no_workspace(other))
          splits.push_back(other);
      },
      {.providers = {"templates"}});
  return splits;
}

}  // namespace

std::vector<Kernel> one_of_each_design(const GemmArguments& arguments) {
  std::vector<Kernel> chosen;
  std::set<std::string> seen;
  std::vector<Kernel> kernels = sm90_kernels(arguments);
  const std::vector<Kernel> splits = splits_like(kernels.front());
  kernels.insert(kernels.end(), splits.rbegin(), splits.rend());  // small tiles first
  for (const Kernel& kernel : kernels) {
    if (seen.insert(design_class(kernel)).second) chosen.push_back(kernel);
  }
  return chosen;
}

}  // namespace gemmery::tests
