// SPDX-License-Identifier: Apache-2.0
#include <gemmery/device.hpp>
#include <gemmery/device_facts.hpp>
#include <gemmery/error.hpp>

#include <gtest/gtest.h>

#include <string_view>

namespace gemmery {
namespace {

TEST(Target, prints_what_it_reads) {
  for (const char* const text : {"cpu", "sm_80", "sm_89", "sm_90a", "sm_100f", "sm_120a"}) {
    EXPECT_EQ(to_string(parse_target(text)), text);
  }
  EXPECT_EQ(parse_target("90a"), parse_target("sm_90a"));
}

TEST(Target, refuses_what_is_none_naming_the_rule) {
  using namespace std::string_view_literals;
  for (const std::string_view text :
       {""sv, "sm_"sv, "sm_x"sv, "sm_90b"sv, "sm_80a"sv, "sm_90f"sv, "sm_90aa"sv, "sm_1"sv,
        "sm_99999"sv, "gpu"sv, "sm_-90"sv, "sm_90\0"sv}) {
    try {
      parse_target(text);
      ADD_FAILURE() << text << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
      EXPECT_EQ(error.operand(), "target");
      EXPECT_FALSE(error.expected().empty() || error.got().empty() || error.hint().empty());
    }
  }
}

TEST(Target, without_its_underscore_gets_the_one_that_was_meant) {
  try {
    parse_target("sm90a");
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(error.hint().starts_with("did you mean sm_90a?")) << error.hint();
  }
}

TEST(Target, code_runs_on_later_devices_of_its_major_version_only) {
  const auto runs = [](const char* code, const char* device) {
    return runs_on(parse_target(code), parse_target(device));
  };
  EXPECT_TRUE(runs("sm_80", "sm_80"));
  EXPECT_TRUE(runs("sm_80", "sm_89"));
  EXPECT_FALSE(runs("sm_89", "sm_80"));
  EXPECT_FALSE(runs("sm_80", "sm_90"));
  EXPECT_TRUE(runs("sm_90a", "sm_90"));
  EXPECT_FALSE(runs("sm_100a", "sm_103"));
  EXPECT_TRUE(runs("sm_100f", "sm_103"));
  EXPECT_TRUE(runs("cpu", "cpu"));
  EXPECT_FALSE(runs("cpu", "sm_90"));
  EXPECT_FALSE(runs("sm_90", "cpu"));
}

TEST(DeviceInfo, is_known_for_every_listed_name) {
  for (const std::string_view name : known_device_names()) {
    const auto info = find_device_info(name);
    ASSERT_TRUE(info) << name;
    EXPECT_GT(info->multiprocessors, 0);
    EXPECT_GT(info->bandwidth_bytes_per_second, 1e11);
    EXPECT_GT(info->fma_f32_per_clock, 0);
    EXPECT_FALSE(info->target.is_cpu());
  }
  EXPECT_FALSE(find_device_info("h300"));
}

TEST(DeviceInfo, names_the_facts_that_no_source_confirms) {
  const auto of_name = [](std::string_view name) {
    return unconfirmed_facts(find_device_info(name).value());
  };
  EXPECT_EQ(of_name("h200"), "");
  EXPECT_EQ(of_name("gb10"), "clock");
  EXPECT_EQ(of_name("orin"), "bandwidth");
  EXPECT_EQ(of_name("b300"), "multiprocessors, L2, memory, clock");
  EXPECT_EQ(unconfirmed_facts(typical_device_info({88, 0})), of_name("l40s"));
  DeviceInfo elsewhere = find_device_info("gb10").value();
  elsewhere.name = "a device of no table";
  EXPECT_EQ(unconfirmed_facts(elsewhere), "");
}

TEST(DeviceInfo, of_a_driver_needs_no_confirmation) {
  DeviceInfo reported = find_device_info("b200").value();
  reported.memory_bytes -= 1'000'000'000;  // a driver keeps some memory for itself
  EXPECT_EQ(unconfirmed_facts(reported), "");
}

TEST(DeviceInfo, is_typical_of_an_architecture) {
  EXPECT_EQ(typical_device_info({90, 'a'}).name, "NVIDIA H200");
  EXPECT_EQ(typical_device_info({120, 0}).name, "NVIDIA GeForce RTX 5090");
  const DeviceInfo unknown = typical_device_info({88, 0});
  EXPECT_EQ(unknown.target, (Target{88, 0}));
  EXPECT_EQ(unknown.name, "an unknown device of sm_88 with the facts of NVIDIA L40S");
  EXPECT_GT(unknown.multiprocessors, 0);
}

TEST(Device, prints_its_type_and_index) {
  EXPECT_EQ(to_string(Device::cpu()), "cpu");
  EXPECT_EQ(to_string(Device::cuda(1)), "cuda:1");
}

}  // namespace
}  // namespace gemmery
