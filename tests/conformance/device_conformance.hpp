// SPDX-License-Identifier: Apache-2.0
// The fixture of the conformance suite for devices that run GPU kernels, GPUs and emulated ones
// alike. A program instantiates it with its devices.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <gemmery/gemmery.hpp>

#include "tests/conformance/suite.hpp"

namespace gemmery::conformance {

// How much of it. Each round has kernels of its own and, where the device is emulated, a schedule
// of its own.
struct DeviceScale {
  int rounds;
  std::size_t kernels_per_round;
  std::int64_t cases_per_round;
  std::size_t kernels_per_line;  // of the degenerate problems
  int repetitions;               // on each stream, for one bit pattern
};

struct DeviceUnderTest {
  std::string device;  // as parse_device reads it; "gpu": the one that GEMMERY_TEST_DEVICE picks, 0
                       // unless set
  DeviceScale scale;
  DeviceScale soak;
  TrialLimits limits;
  std::vector<const char*> repeated_lines;  // that are run over and over again
  std::string family = {};                  // whose kernels are drawn; empty: all
  std::vector<const char*> words = {};      // one of which is in their names; empty: any
};

class DeviceConformance : public testing::TestWithParam<DeviceUnderTest> {
 protected:
  // Skips, with the reason, where there is no such device or no compiler.
  void SetUp() override;

  Device device() const { return device_; }
  const DeviceScale& scale() const { return is_soak() ? GetParam().soak : GetParam().scale; }
  TrialLimits limits() const {
    TrialLimits limits = GetParam().limits;
    limits.device = device_;
    return limits;
  }
  // From here on, launches on emulated devices take another schedule.
  void shake(Choices& choices) const;

 private:
  Device device_;
};

// A, B and out of a problem on the device, A and B filled.
struct DeviceOperands {
  Buffer a, b, out;
  GemmArguments arguments;

  static DeviceOperands make(const ProblemLine& line, std::uint64_t seed, Stream stream);
};

std::vector<std::byte> download(const Buffer& buffer, Stream stream);

}  // namespace gemmery::conformance
