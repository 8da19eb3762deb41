// SPDX-License-Identifier: Apache-2.0
// Conformance on an emulated device passes the sound kernel and catches every fault that is planted
// in device code.
#include <gtest/gtest.h>

#include <iostream>

#include <fmt/format.h>

#include <gemmery/gemmery.hpp>

#include "jit/nvrtc.hpp"
#include "tests/conformance/device_mutants.hpp"
#include "tests/conformance/suite.hpp"

namespace gemmery::conformance {
namespace {

constexpr std::int64_t sound_cases = 64;
constexpr std::int64_t patience = 1024;  // cases in which a fault must show; most do in the first

// Doubles the number of cases until one fails, and returns how; empty where none does.
std::string find_fault(const Kernel& kernel, std::int64_t most_cases, std::uint64_t seed) {
  for (std::int64_t cases = 1; cases <= most_cases; cases *= 2) {
    const SuiteReport report = run_suite(
        {.kernels = {kernel},
         .cases = cases,
         .seed = seed,
         .threads = 1,
         .limits = {.products = 1 << 15, .depth = 100, .device = *parse_device("emulated:h200")},
         .asks_others = false});
    if (report.mismatches() == 0) continue;
    const std::string& failure = report.failures.front();
    return fmt::format("within {} cases: {}", cases, failure.substr(failure.find("\n    ") + 5));
  }
  return {};
}

TEST(DeviceMutation, only_the_sound_kernel_passes) {
  const jit::CompilerStatus compiler = jit::compiler_status();
  if (!compiler.found) GTEST_SKIP() << compiler.searched;
  const std::uint64_t seed = test_seed();
  set_emulator_seed(seed >> 1);
  std::cout << "seed " << seed << "\n";
  std::unique_ptr<Family> mutants = make_device_mutants();
  const Family& family = *mutants;
  register_family(std::move(mutants));
  family.enumerate([&](const Kernel& kernel) {
    const bool is_sound = fault_of(kernel) == "nothing";
    const std::string fault = find_fault(kernel, is_sound ? sound_cases : patience, seed);
    EXPECT_EQ(fault.empty(), is_sound)
        << fault_of(kernel) << ", seed " << seed << ": "
        << (is_sound ? fault : fmt::format("passed {} cases", patience));
    EXPECT_EQ(fault.find("compile error"), std::string::npos) << fault;
    std::cout << fmt::format("{:42} {}\n", fault_of(kernel),
                             fault.empty() ? "not seen" : fault.substr(0, fault.find('\n')));
  });
}

}  // namespace
}  // namespace gemmery::conformance
