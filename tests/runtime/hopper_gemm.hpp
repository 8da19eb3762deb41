// SPDX-License-Identifier: Apache-2.0
// The fixture of the launch tests of sm90 kernels, on an H200 and on an emulated one.
#pragma once

#include <gtest/gtest.h>
#include <gemmery/gemmery.hpp>

#include <string>
#include <vector>

namespace gemmery::tests {

class HopperGemm : public testing::TestWithParam<Device> {
 protected:
  // Skips the test, with the reason, if there is no such device, no compiler, or no sm90 kernel for
  // it.
  void SetUp() override;

  Device device() const { return GetParam(); }
  bool is_emulated() const { return device().type == DeviceType::emulated; }
};

// The sm90 kernels that discovery offers for a problem, the first of each schedule and cluster:
// "coop 1x1", "pingpong 2x1", …
std::vector<Kernel> sm90_kernels(const GemmArguments& arguments);
std::vector<Kernel> one_of_each_design(const GemmArguments& arguments);
std::string design_class(const Kernel& kernel);

}  // namespace gemmery::tests
