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

// Problems whose kernels read scales, and zero points, for blocks of k.
constexpr const char* scaled_products[] = {
    "a=e4m3 b=e4m3:c scale_a=f32[1x128] scale_b=f32[128x128]",
    "a=e4m3 b=e5m2:c scale_a=e8m0[1x32]:swizzled scale_b=e8m0[1x32] out=f32",
    "a=bf16 b=s8:c scale_b=f32[1x64] zero_b=s8[1x64]",
    "a=bf16 b=s4:c scale_b=bf16[1x32] zero_b=s8[1x32] out=f32",
    "a=f16 b=e2m1:c scale_b=e8m0[1x32]:swizzled",
    "a=bf16 b=e2m1:c scale_b=e4m3[1x16] out=f32",
    "a=u4 scale_a=f32[1x64] b=f16:c out=f32"};

// A few kernels of each family for some of them, in forms that many kernels serve.
std::vector<Kernel> kernels_of_scaled_groups(Device device, std::size_t count, Choices& choices) {
  std::vector<Kernel> kernels;
  for (const char* const product : scaled_products)
    for (const char* const form : {"", " ragged=n ends=i32/align=32", " outside=zero"}) {
      const std::string line = std::string("grouped_gemm 512x256x256 groups=8 ") + product + form;
      const auto all = get_kernels(parse_problem(line).problem, device_info(device));
      kernels.insert(kernels.end(), all.begin(), all.end());
    }
  return choose_kernels(std::move(kernels), count, choices);
}

TEST_P(GroupsEmulated, every_kernel_of_scaled_groups_is_right_on_random_ones) {
  if (GetParam().family != nullptr) GTEST_SKIP() << "those of all families";
  const Device device = parse_device(GetParam().device).value();
  const std::uint64_t seed = test_seed();
  Choices choices(seed);
  set_emulator_seed(choices.bits() >> 1);
  for (int round = 0; round < (is_soak() ? 12 : 1) && !HasFailure(); ++round) {
    const SuiteReport report =
        run_suite({.kernels = kernels_of_scaled_groups(device, is_soak() ? 10 : 3, choices),
                   .cases = is_soak() ? 60 : 9,
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
