// SPDX-License-Identifier: Apache-2.0
// Kernels that discovery does not offer but that have a name, run on an emulated A100, or an H200
// if their target requires it, with integers and poisoned outputs.
#pragma once

#include <gtest/gtest.h>
#include <gemmery/gemmery.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/random_seed.hpp"
#include "tests/support/row_sample.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery::tests {

class NamedDesigns : public WithNvrtc {
 protected:
  void expect_exact(const std::string& name, const std::string& line) {
    const auto kernel = find_kernel(name);
    ASSERT_TRUE(kernel) << name;
    EXPECT_EQ(kernel->name(), name);
    if (!rows_.takes_next()) return;
    const VerifyReport report =
        verify(parse_problem(line), *kernel,
               {.fill = Fill::integers, .seed = random_seed(), .device = device_for(*kernel)});
    EXPECT_TRUE(report.passed) << name << ", " << line << ": " << report.first_failure;
    EXPECT_EQ(report.method, "exact integers") << name;
    EXPECT_GT(report.elements, 0) << name;
  }

  // Runs with normal numbers, and with numbers from a narrow range.
  void expect_within_bounds(const std::string& name, const std::string& line) {
    const auto kernel = find_kernel(name);
    ASSERT_TRUE(kernel) << name;
    if (!rows_.takes_next()) return;
    for (const Fill fill : {Fill::normal, Fill::uniform}) {
      const VerifyReport report =
          verify(parse_problem(line), *kernel,
                 {.fill = fill, .seed = random_seed(), .device = device_for(*kernel)});
      EXPECT_TRUE(report.passed) << name << ", " << line << ": " << report.first_failure;
      EXPECT_GT(report.worst_ratio, 0) << name << ": nothing was rounded";
    }
  }

  // For those of a list of targets that the kernel has.
  void expect_no_spills(const std::string& name) {
    const auto kernel = find_kernel(name);
    ASSERT_TRUE(kernel) << name;
    if (!rows_.takes_next()) return;
    const std::vector<Target> supported = kernel->metadata().supported_targets;
    for (const char* const target : {"sm_80", "sm_89", "sm_90", "sm_100", "sm_121"}) {
      if (std::ranges::find(supported, parse_target(target)) == supported.end()) continue;
      const Artifact artifact = kernel->compile(parse_target(target));
      ASSERT_TRUE(artifact.resources()) << name << " for " << target;
      EXPECT_EQ(artifact.resources()->spill_store_bytes, 0) << name << " for " << target;
      EXPECT_EQ(artifact.resources()->spill_load_bytes, 0) << name << " for " << target;
    }
  }

 private:
  static Device device_for(const Kernel& kernel) {
    const bool runs_on_ampere = kernel.metadata().supported_targets.front().architecture < 90;
    return parse_device(runs_on_ampere ? "emulated:a100" : "emulated:h200").value();
  }

  RowSample rows_;
};

}  // namespace gemmery::tests
