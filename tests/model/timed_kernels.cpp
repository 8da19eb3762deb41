// SPDX-License-Identifier: Apache-2.0
// Reads tests/model/designs_h100.csv, groups_h100.csv and races_h200.csv.
#include "tests/model/timed_kernels.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <gemmery/discovery.hpp>

#include "providers/templates/simt/design.hpp"
#include "providers/templates/skinny/design.hpp"
#include "providers/templates/sm80/design.hpp"
#include "providers/templates/sm90/design.hpp"

namespace gemmery::tests {
namespace {

// Removes the next field from a line and returns it.
std::string take_field(std::string_view& line) {
  const std::size_t end = std::min(line.find(','), line.size());
  const std::string field(line.substr(0, end));
  line.remove_prefix(std::min(end + 1, line.size()));
  return field;
}

// Kernels of an earlier version of a family count as the same designs.
std::string present_name(const std::string& name) {
  const std::string rest = name.substr(std::min(name.find('_'), name.size()));
  constexpr std::pair<std::string_view, int> families[] = {{"sm90v", templates::sm90_version},
                                                           {"sm80v", templates::sm80_version},
                                                           {"skinny", templates::skinny_version},
                                                           {"simt", templates::simt_version}};
  for (const auto& [family, version] : families) {
    if (name.starts_with(family)) return fmt::format("{}{}{}", family, version, rest);
  }
  throw std::runtime_error("not a kernel of a known family: " + name);
}

}  // namespace

std::vector<TimedProblem> read_timed_kernels(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<TimedProblem> problems;
  for (std::string text; std::getline(file, text);) {
    if (text.starts_with('#') || text == timed_columns) continue;
    std::string_view line = text;
    const std::string set = take_field(line);
    const std::string problem = take_field(line);
    const std::string kernel = take_field(line);
    if (!problem.empty())
      problems.push_back({.set = set, .problem = parse_problem(problem).problem, .kernels = {}});
    if (problems.empty()) throw std::runtime_error("a row without a problem: " + text);
    problems.back().kernels.push_back(
        {.name = present_name(kernel), .microseconds = std::stod(take_field(line))});
  }
  for (TimedProblem& problem : problems)
    std::ranges::stable_sort(problem.kernels, {}, &TimedKernel::microseconds);
  return problems;
}

std::vector<MeasuredProblem> sm90_problems(const std::vector<TimedProblem>& problems) {
  std::vector<MeasuredProblem> all;
  for (const TimedProblem& timed : problems) {
    MeasuredProblem measured{.set = timed.set, .problem = timed.problem, .designs = {}};
    for (const TimedKernel& kernel : timed.kernels) {
      const auto parts = templates::parse_sm90_name(kernel.name);
      if (!parts) continue;
      const double best_us =
          measured.designs.empty() ? kernel.microseconds : measured.designs.front().microseconds;
      measured.designs.push_back({.rules = parts->rules,
                                  .tile = parts->tile,
                                  .microseconds = kernel.microseconds,
                                  .regret = kernel.microseconds / best_us - 1});
    }
    if (!measured.designs.empty()) all.push_back(std::move(measured));
  }
  return all;
}

Choice choose(const TimedProblem& problem, const DeviceInfo& device) {
  const std::vector<RankedKernel> kernels = get_kernels(problem.problem, device);
  if (kernels.empty()) throw std::runtime_error("no kernel for " + to_string(problem.problem));
  for (const RankedKernel& kernel : kernels) {
    const auto found = std::ranges::find(problem.kernels, kernel.name(), &TimedKernel::name);
    if (found == problem.kernels.end()) continue;
    return {.first = kernels.front().name(),
            .was_timed = kernels.front().name() == found->name,
            .chosen = &*found,
            .predicted_us = kernel.predicted_us,
            .regret = found->microseconds / problem.kernels.front().microseconds - 1};
  }
  throw std::runtime_error("none of the kernels was timed: " + to_string(problem.problem));
}

}  // namespace gemmery::tests
