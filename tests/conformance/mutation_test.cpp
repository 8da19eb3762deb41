// SPDX-License-Identifier: Apache-2.0
// The suite passes a sound kernel and catches every planted fault.
#include <gtest/gtest.h>

#include <iostream>

#include <fmt/format.h>

#include <gemmery/discovery.hpp>

#include "tests/conformance/mutants.hpp"
#include "tests/conformance/suite.hpp"

namespace gemmery::conformance {
namespace {

constexpr std::int64_t patience = 4000;  // cases in which a fault must show
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
  return run_suite({.kernels = {kernel}, .cases = cases, .seed = seed, .threads = 1, .limits = small});
}

// Doubles the number of cases until one fails; 0 where none does.
std::int64_t cases_until_killed(const Kernel& kernel, std::uint64_t seed) {
  for (std::int64_t cases = 125; cases <= patience; cases *= 2) {
    if (run_cases(kernel, cases, seed).mismatches() != 0) return cases;
  }
  return 0;
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
    const std::int64_t cases = cases_until_killed(kernel, seed);
    EXPECT_NE(cases, 0) << kernel.name() << " passed " << patience << " cases; seed " << seed;
    killed += cases != 0 ? 1 : 0;
    std::cout << fmt::format("{:60} {}\n", kernel.name(), cases != 0 ? fmt::format("caught within {} cases", cases) : "NOT caught");
  }
  std::cout << killed << " of " << mutants.size() << " faults caught\n";
}

}  // namespace
}  // namespace gemmery::conformance
