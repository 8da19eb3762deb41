// SPDX-License-Identifier: Apache-2.0
// Grouped kernels on emulated devices of several architectures: groups of every size and form,
// under random schedules. GEMMERY_SOAK=1 runs 6,000 cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include <gemmery/gemmery.hpp>

#include "tests/conformance/suite.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery::conformance {
namespace {

std::vector<Kernel> kernels_of_groups(Device device, std::size_t count, Choices& choices) {
  const DeviceInfo& info = device_info(device);
  std::vector<Kernel> kernels;
  for_each_kernel(
      [&](const Kernel& kernel) {
        const bool is_of_groups =
            std::ranges::any_of(kernel.family().design_fields(kernel),
                                [](const DesignField& field) { return field.name == "groups"; });
        if (is_of_groups) kernels.push_back(kernel);
      },
      {.providers = {"templates"}});
  std::erase_if(kernels, [&](const Kernel& kernel) {
    return !std::ranges::any_of(kernel.family().targets(kernel),
                                [&](Target target) { return runs_on(target, info.target); });
  });
  return choose_kernels(std::move(kernels), count, choices);
}

class GroupsEmulated : public tests::WithNvrtc, public testing::WithParamInterface<const char*> {};

TEST_P(GroupsEmulated, every_kernel_of_groups_is_right_on_random_ones) {
  const Device device = parse_device(GetParam()).value();
  const std::uint64_t seed = test_seed();
  Choices choices(seed);
  const int rounds = is_soak() ? 20 : 4;
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    set_emulator_seed(choices.bits() >> 1);
    const SuiteReport report =
        run_suite({.kernels = kernels_of_groups(device, 10, choices),
                   .cases = is_soak() ? 100 : 75,
                   .seed = choices.bits(),
                   .threads = 2,
                   .limits = {.products = 1 << 15, .depth = 300, .device = device}});
    std::cout << GetParam() << "\n" << to_string(report) << std::flush;
    EXPECT_EQ(report.mismatches(), 0) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GroupsEmulated,
                         testing::Values("emulated:h200", "emulated:a100", "emulated:l40s",
                                         "emulated:b200"));

}  // namespace
}  // namespace gemmery::conformance
