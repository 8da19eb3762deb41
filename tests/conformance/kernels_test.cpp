// SPDX-License-Identifier: Apache-2.0
// The metadata of every kernel are consistent with discovery and with its family.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <unordered_set>

#include <gemmery/gemmery.hpp>

#include "tests/conformance/random_source.hpp"

namespace gemmery::conformance {
namespace {

// Calls `check` with every kernel, or a random sample of about `sample` of them.
template <class Check>
void for_each_sampled(std::int64_t sample, const Check& check) {
  std::int64_t count = 0;
  for_each_kernel([&](const Kernel&) { ++count; });
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Choices choices(seed);
  for_each_kernel([&](const Kernel& kernel) {
    const bool is_chosen = is_soak() || count <= sample || choices.between(1, count) <= sample;
    if (is_chosen && !testing::Test::HasFailure()) check(kernel);
  });
}

TEST(Kernels, are_named_uniquely) {
  std::unordered_set<std::string> names;
  for_each_kernel([&](const Kernel& kernel) {
    if (!names.insert(kernel.name()).second)
      ADD_FAILURE() << "two kernels are called " << kernel.name();
  });
  EXPECT_FALSE(names.empty());
}

TEST(Kernels, are_found_by_their_names) {
  for_each_sampled(20000, [](const Kernel& kernel) {
    const auto found = find_kernel(kernel.name());
    ASSERT_TRUE(found.has_value()) << kernel.name();
    EXPECT_TRUE(*found == kernel) << kernel.name() << " reads back as " << found->name();
  });
}

TEST(Kernels, are_not_found_by_damaged_names) {
  for_each_sampled(2000, [](const Kernel& kernel) {
    const std::string name = kernel.name();
    for (const std::string& damaged :
         {name + "x", name + "_", name.substr(1), name.substr(0, name.size() / 2), " " + name}) {
      const auto found = find_kernel(damaged);
      EXPECT_TRUE(!found || found->name() == damaged)
          << '"' << damaged << "\" finds " << found->name();
    }
  });
}

TEST(Kernels, describe_themselves_completely) {
  const auto providers = provider_names();
  for_each_sampled(20000, [&](const Kernel& kernel) {
    const Metadata metadata = kernel.metadata();
    SCOPED_TRACE(metadata.kernel_name);
    EXPECT_EQ(metadata.kernel_name, kernel.name());
    EXPECT_EQ(metadata.kernel_class, kernel.family().name());
    EXPECT_NE(std::ranges::find(providers, metadata.provider), providers.end());
    EXPECT_FALSE(metadata.supported_targets.empty());
    EXPECT_EQ(metadata.operands, kernel.operands());
    EXPECT_EQ(metadata.epilogue, text(kernel.epilogue()));
    for (const DesignField& field : metadata.design)
      EXPECT_FALSE(field.name.empty() || field.value.empty());
  });
}

TEST(Kernels, are_enumerated_in_a_fixed_order) {
  const auto first = get_kernels();
  const auto second = get_kernels();
  EXPECT_TRUE(first == second);
}

TEST(Kernels, filters_keep_exactly_what_they_say) {
  for (const std::string& provider : provider_names()) {
    const auto kernels = get_kernels({.providers = {provider}});
    for (const Kernel& kernel : kernels) ASSERT_EQ(kernel.family().provider(), provider);
  }
  const Filter doubles{.metadata = [](const Metadata& metadata) {
    return metadata.operands.a.dtype == DType::float64;
  }};
  for (const Kernel& kernel : get_kernels(doubles))
    ASSERT_EQ(kernel.operands().a.dtype, DType::float64);
}

// Discovery offers splits of k only for few tiles and long k, although they support any problem.
bool may_be_left_out(const Kernel& kernel) {
  const Metadata metadata = kernel.metadata();
  const std::string_view split_k = metadata.design_value("split_k");
  return !split_k.empty() && split_k != "1";
}

// A listed kernel supports the problem; a kernel that is not listed refuses with a reason.
TEST(Kernels, supports_agrees_with_get_kernels_on_every_known_device) {
  constexpr std::string_view lines[]{"gemm 128x128x128 a=f32",
                                     "gemm 127x65x33 a=f16 b=f16:c out=f16 c=f16[n] beta=1",
                                     "gemm 64x64x64x3 a=s8 b=u8 out=s32",
                                     "gemm 5x7x9 a=f64/strides=2,40 b=f64",
                                     "gemm 256x256x0 a=bf16 out=f32",
                                     "gemm 16x4096x4096 a=e4m3 b=e4m3:c out=bf16"};
  std::vector<DeviceInfo> devices{device_info(Device::cpu())};
  for (const std::string_view name : known_device_names())
    devices.push_back(*find_device_info(name));
  for (const DeviceInfo& device : devices) {
    for (const std::string_view line : lines) {
      const GemmProblem problem = parse_problem(line).problem;
      const auto listed = get_kernels(problem, device);
      for_each_sampled(3000, [&](const Kernel& kernel) {
        const bool is_listed = std::ranges::any_of(listed, [&](const RankedKernel& other) {
          return static_cast<const Kernel&>(other) == kernel;
        });
        const Status status = kernel.supports(problem, device);
        ASSERT_TRUE(is_listed == status.is_success() || (!is_listed && may_be_left_out(kernel)))
            << kernel.name() << " on " << device.name << ", " << line << ": " << status.error();
        ASSERT_EQ(status.is_success(), status.error().empty());
      });
    }
  }
}

TEST(Kernels, are_ranked_by_time_and_end_with_the_fallback) {
  const GemmProblem problem = parse_problem("gemm 300x200x100 a=f32").problem;
  std::vector<DeviceInfo> devices{device_info(Device::cpu())};
  for (const std::string_view name : known_device_names())
    devices.push_back(*find_device_info(name));
  for (const DeviceInfo& device : devices) {
    const auto kernels = get_kernels(problem, device);
    const bool is_before_ampere = !device.target.is_cpu() && device.target.architecture < 80;
    ASSERT_EQ(kernels.empty(), is_before_ampere) << device.name;
    if (is_before_ampere) continue;
    EXPECT_TRUE(std::ranges::is_sorted(kernels, {}, &RankedKernel::predicted_us)) << device.name;
    const std::string_view last = kernels.back().family().name();
    EXPECT_TRUE(last == (device.target.is_cpu() ? "reference" : "simt") || last == "host_reference")
        << last;
    for (const RankedKernel& kernel : kernels) EXPECT_GT(kernel.predicted_us, 0) << kernel.name();
  }
}

}  // namespace
}  // namespace gemmery::conformance
