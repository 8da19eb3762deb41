// SPDX-License-Identifier: Apache-2.0
// Random epilogues on the CPU, on the emulator and on a GPU where there is one. GEMMERY_SOAK=1 asks
// for 300 programs and more of each.
#include <gtest/gtest.h>

#include <iostream>

#include <gemmery/gemmery.hpp>

#include "tests/conformance/random_epilogues.hpp"
#include "tests/conformance/random_source.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::conformance {
namespace {

void expect_right(const EpilogueOptions& options) {
  const EpilogueReport report = run_random_epilogues(options);
  std::cout << to_string(report);
  EXPECT_TRUE(report.failures.empty());
  EXPECT_LE(2 * report.open, report.elements) << "most verdicts say nothing";
}

TEST(EpilogueConformance, on_the_cpu) {
  expect_right({.device = Device::cpu(),
                .programs = is_soak() ? 2000 : 40,
                .kernels_per_program = 4,
                .seed = tests::random_seed()});
}

// Every program is compiled first, and every instruction of a warp emulated.
TEST(EpilogueConformance, on_an_emulated_gpu) {
  expect_right({.device = parse_device("emulated:h200").value(),
                .programs = is_soak() ? 300 : 8,
                .kernels_per_program = 2,
                .seed = tests::random_seed()});
}

TEST(EpilogueConformance, on_a_gpu) {
  if (devices().empty()) GTEST_SKIP() << "no GPU";
  expect_right({.device = devices().front(),
                .programs = is_soak() ? 1000 : 20,
                .kernels_per_program = 3,
                .seed = tests::random_seed(),
                .most_extent = 300});
}

}  // namespace
}  // namespace gemmery::conformance
