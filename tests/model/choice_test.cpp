// SPDX-License-Identifier: Apache-2.0
// Compares the first kernel of discovery, of all families, with measured times: of an H100 types,
// layouts, few rows and long k, which sm90_designs_h200.csv does not have, and groups; of an H200
// the first kernels of a race.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "tests/model/timed_kernels.hpp"

namespace gemmery::tests {
namespace {

std::vector<TimedProblem> timed_problems(const std::string& device) {
  if (device == "h200") return read_timed_kernels("tests/model/races_h200.csv");
  std::vector<TimedProblem> problems = read_timed_kernels("tests/model/designs_h100.csv");
  std::ranges::move(read_timed_kernels("tests/model/groups_h100.csv"),
                    std::back_inserter(problems));
  return problems;
}

// Prints the table in docs/rooms/model.md.
void expect_choices_within(const std::string& set, double regret,
                           const std::string& device_name = "h100") {
  const DeviceInfo device = *find_device_info(device_name);
  std::size_t count = 0;
  for (const TimedProblem& problem : timed_problems(device_name)) {
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

TEST(Choice, the_first_kernel_is_within_12_percent_of_the_best_of_ten_on_an_h200) {
  expect_choices_within("ranks", 0.12, "h200");
}

TEST(Choice, the_first_kernel_is_within_6_percent_of_the_best_family_on_an_h200) {
  expect_choices_within("families", 0.06, "h200");
}

TEST(Choice, the_first_kernel_is_within_6_percent_of_the_best_where_k_is_split) {
  expect_choices_within("splits", 0.06, "h200");
}

TEST(Choice, the_first_kernel_is_within_13_percent_of_the_best_where_operands_may_be_copied) {
  expect_choices_within("copies", 0.13, "h200");
}

}  // namespace
}  // namespace gemmery::tests
