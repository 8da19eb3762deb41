// SPDX-License-Identifier: Apache-2.0
// The suite passes a correct kernel and catches every planted fault.
#include <gtest/gtest.h>

#include <iostream>

#include <fmt/format.h>

#include <gemmery/discovery.hpp>

#include "tests/conformance/mutants.hpp"
#include "tests/conformance/suite.hpp"

namespace gemmery::conformance {
namespace {

constexpr std::int64_t patience = 4096;  // cases within which a fault must be found
constexpr TrialLimits small{.products = 1 << 13};

const Family& registered_mutants() {
  static const Family* const family = [] {
    std::unique_ptr<Family> mutants = make_mutants();
    const Family* const kept = mutants.get();
    register_family(std::move(mutants));
    return kept;
  }();
  return *family;
}

SuiteReport run_cases(const Kernel& kernel, std::int64_t cases, std::uint64_t seed) {
  return run_suite({.kernels = {kernel},
                    .cases = cases,
                    .seed = seed,
                    .threads = 1,
                    .limits = small,
                    .asks_others = false});
}

// Doubles the number of cases until one fails. Returns the failure, or "".
std::string find_fault(const Kernel& kernel, std::uint64_t seed) {
  for (std::int64_t cases = patience / 128; cases <= patience; cases *= 2) {
    const SuiteReport report = run_cases(kernel, cases, seed);
    if (report.mismatches() == 0) continue;
    const std::string& failure = report.failures.front();
    return fmt::format("within {} cases: {}", cases, failure.substr(failure.rfind('\n') + 5));
  }
  return {};
}

TEST(Mutation, kernels_without_a_fault_pass) {
  const std::uint64_t seed = test_seed();
  for (const Kernel& kernel : sound_kernels(registered_mutants())) {
    const SuiteReport report = run_cases(kernel, 500, seed);
    EXPECT_EQ(report.mismatches(), 0) << kernel.name() << "\n" << to_string(report);
  }
}

TEST(Mutation, every_planted_fault_is_caught) {
  const std::uint64_t seed = test_seed();
  std::cout << "seed " << seed << "\n";
  int killed = 0;
  const std::vector<Kernel> mutants = faulty_kernels(registered_mutants());
  for (const Kernel& kernel : mutants) {
    const std::string fault = find_fault(kernel, seed);
    EXPECT_FALSE(fault.empty()) << kernel.name() << " passed " << patience << " cases; seed "
                                << seed;
    killed += fault.empty() ? 0 : 1;
    std::cout << fmt::format("{:48} {}\n", kernel.name(), fault.empty() ? "NOT caught" : fault);
  }
  std::cout << killed << " of " << mutants.size() << " faults caught\n";
}

}  // namespace
}  // namespace gemmery::conformance
