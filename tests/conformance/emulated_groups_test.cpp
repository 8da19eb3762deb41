// SPDX-License-Identifier: Apache-2.0
// Grouped kernels on emulated devices of several architectures: groups of all sizes and forms,
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

struct Where {
  const char* device;
  const char* family;  // nullptr: all
};

std::vector<Kernel> kernels_of_groups(Device device, const char* family, std::size_t count,
                                      Choices& choices) {
  const DeviceInfo& info = device_info(device);
  std::vector<Kernel> kernels;
  for_each_kernel(
      [&](const Kernel& kernel) {
        if (family != nullptr && kernel.family().name() != family) return;
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

class GroupsEmulated : public tests::WithNvrtc, public testing::WithParamInterface<Where> {};

TEST_P(GroupsEmulated, every_kernel_of_groups_is_right_on_random_ones) {
  const Device device = parse_device(GetParam().device).value();
  const std::uint64_t seed = test_seed();
  Choices choices(seed);
  const int rounds = is_soak() ? 20 : 2;
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    set_emulator_seed(choices.bits() >> 1);
    const SuiteReport report =
        run_suite({.kernels = kernels_of_groups(device, GetParam().family, 10, choices),
                   .cases = is_soak() ? 100 : 40,
                   .seed = choices.bits(),
                   .threads = 2,
                   .limits = {.products = 1 << 15, .depth = 300, .device = device}});
    std::cout << GetParam().device << "\n" << to_string(report) << std::flush;
    EXPECT_EQ(report.mismatches(), 0) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GroupsEmulated,
                         testing::Values(Where{"emulated:h200", "sm90"},
                                         Where{"emulated:h200", nullptr},
                                         Where{"emulated:a100", nullptr},
                                         Where{"emulated:l40s", nullptr},
                                         Where{"emulated:b200", nullptr}));

}  // namespace
}  // namespace gemmery::conformance
