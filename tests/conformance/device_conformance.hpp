// SPDX-License-Identifier: Apache-2.0
// The fixture of the conformance suite for GPUs and emulated devices. A test program instantiates
// it with its devices.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <gemmery/gemmery.hpp>

#include "tests/conformance/suite.hpp"

namespace gemmery::conformance {

// The size of a run. Each round has different kernels and, on an emulated device, a different
// schedule.
struct DeviceScale {
  int rounds;
  std::size_t kernels_per_round;
  std::int64_t cases_per_round;
  std::size_t kernels_per_line;  // for the degenerate problems
  int repetitions;               // on each stream, for one bit pattern
};

struct DeviceUnderTest {
  std::string device;  // as parse_device reads it; "gpu": the one that GEMMERY_TEST_DEVICE picks, 0
                       // unless set
  DeviceScale scale;
  DeviceScale soak;
  TrialLimits limits;
  std::vector<const char*> repeated_lines;  // problems that are run repeatedly
  std::string family = {};                  // the family of the kernels; empty: all
  std::vector<const char*> words = {};      // names must contain one of these; empty: any
  std::string name = {};                    // of the instance; empty: the family, or "any"
};

// "sm90", "sm90_conv": the end of a test's name.
std::string name_of(const testing::TestParamInfo<DeviceUnderTest>& instance);

class DeviceConformance : public testing::TestWithParam<DeviceUnderTest> {
 protected:
  // Skips the test, with the reason, if there is no such device or no compiler.
  void SetUp() override;

  Device device() const { return device_; }
  const DeviceScale& scale() const { return is_soak() ? GetParam().soak : GetParam().scale; }
  TrialLimits limits() const {
    TrialLimits limits = GetParam().limits;
    limits.device = device_;
    return limits;
  }
  // The suite: random problems by a random sample of kernels.
  void try_random_problems();
  // Sets a new random schedule for later launches on emulated devices.
  void shake(Choices& choices) const;

 private:
  Device device_;
};

// A, B and out of a problem on the device; A and B are filled.
struct DeviceOperands {
  Buffer a, b, out;
  GemmArguments arguments;

  static DeviceOperands make(const ProblemLine& line, std::uint64_t seed, Stream stream);
};

std::vector<std::byte> download(const Buffer& buffer, Stream stream);

}  // namespace gemmery::conformance
