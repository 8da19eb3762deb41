// SPDX-License-Identifier: Apache-2.0
// Compares the first kernel of discovery, of all families, with times measured on an H100: types,
// layouts, few rows and long k, which sm90_designs_h200.csv does not have, and groups.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "tests/model/timed_kernels.hpp"

namespace gemmery::tests {
namespace {

std::vector<TimedProblem> timed_problems() {
  std::vector<TimedProblem> problems = read_timed_kernels("tests/model/designs_h100.csv");
  std::ranges::move(read_timed_kernels("tests/model/groups_h100.csv"),
                    std::back_inserter(problems));
  return problems;
}

// Prints the table in docs/rooms/model.md.
void expect_choices_within(const std::string& set, double regret) {
  const DeviceInfo device = *find_device_info("h100");
  std::size_t count = 0;
  for (const TimedProblem& problem : timed_problems()) {
    if (problem.set != set) continue;
    const Choice choice = choose(problem, device);
    fmt::print("{:8} {:5.1f} %  predicted {:7.1f} us, took {:7.1f}, best {:7.1f}  {}  {}{}\n", set,
               100 * choice.regret, choice.predicted_us, choice.chosen->microseconds,
               problem.kernels.front().microseconds, to_string(problem.problem),
               choice.chosen->name, choice.was_timed ? "" : " (first: " + choice.first + ")");
    EXPECT_LE(choice.regret, regret) << to_string(problem.problem) << ": " << choice.chosen->name;
    ++count;
  }
  EXPECT_GE(count, 5U) << set;
}

TEST(Choice, the_first_kernel_is_within_8_percent_of_the_best_on_problems_of_the_fit) {
  expect_choices_within("fitted", 0.08);
}

TEST(Choice, the_first_kernel_is_within_10_percent_of_the_best_on_problems_never_seen) {
  expect_choices_within("heldout", 0.1);
}

TEST(Choice, the_first_kernel_is_within_3_percent_of_the_best_on_groups) {
  expect_choices_within("groups", 0.03);
}

}  // namespace
}  // namespace gemmery::tests
