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

std::vector<Kernel> sm90_kernels(const GemmArguments& arguments) {
  std::vector<Kernel> kernels;
  for (const RankedKernel& kernel : get_kernels(arguments)) {
    if (kernel.family().name() == "sm90") kernels.push_back(kernel);
  }
  return kernels;
}

std::string design_class(const Kernel& kernel) {
  const Metadata metadata = kernel.metadata();
  return std::string(metadata.design_value("schedule")) + " " +
         std::string(metadata.design_value("cluster"));
}

std::vector<Kernel> one_of_each_design(const GemmArguments& arguments) {
  std::vector<Kernel> chosen;
  std::set<std::string> seen;
  for (const Kernel& kernel : sm90_kernels(arguments)) {
    if (seen.insert(design_class(kernel)).second) chosen.push_back(kernel);
  }
  return chosen;
}

}  // namespace gemmery::tests
