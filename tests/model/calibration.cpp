// SPDX-License-Identifier: Apache-2.0
// Reading the file by its first line's column names' order, which bench/calibrate keeps.
#include "tests/model/calibration.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "providers/templates/gemm_sm90_prediction.hpp"

namespace gemmery::tests {
namespace {

constexpr std::string_view columns =
    "set,problem,kernel,pass,median_us,quartile_low_us,quartile_high_us,samples";

// Rows of the first pass have so few that one launch of a large problem amid a falling clock shows:
// their lower quartile is what counts (4096x16384x6656: 1260 to 1600 us for one kernel).
constexpr std::string_view short_samples = "3";

std::array<std::string_view, 8> first_fields(std::string_view line) {
  std::array<std::string_view, 8> fields;
  for (std::string_view& field : fields) {
    const std::size_t end = std::min(line.find(','), line.size());
    field = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return fields;
}

templates::Sm90Parts read_kernel(std::string_view name) {
  const std::string rest(name.substr(std::min(name.find('_'), name.size())));
  const auto parts =
      templates::parse_sm90_name(fmt::format("sm90v{}{}", templates::sm90_version, rest));
  if (!parts) throw std::runtime_error("not a kernel of sm90: " + std::string(name));
  return *parts;
}

}  // namespace

// Passes follow each other, so what comes later replaces what was there.
void keep_row(MeasuredProblem& problem, const MeasuredDesign& row) {
  const auto same = std::ranges::find_if(
      problem.designs, [&](const MeasuredDesign& known) { return known.tile == row.tile; });
  if (same == problem.designs.end())
    problem.designs.push_back(row);
  else
    *same = row;
}

std::vector<MeasuredProblem> read_calibration(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<MeasuredProblem> problems;
  std::string last_problem;
  std::string last_pass;
  double best_us = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#') || line.starts_with(columns)) continue;
    const auto [set, problem, kernel, pass, median, low, high, samples] = first_fields(line);
    const double us = std::stod(std::string(samples == short_samples ? low : median));
    // The first row of a pass is its fastest.
    if (problem != last_problem || pass != last_pass) best_us = us;
    if (problem != last_problem) {
      problems.push_back(
          {.set = std::string(set), .problem = parse_problem(problem).problem, .designs = {}});
    }
    last_problem = problem;
    last_pass = pass;
    const templates::Sm90Parts parts = read_kernel(kernel);
    keep_row(problems.back(), {.rules = parts.rules,
                               .tile = parts.tile,
                               .microseconds = us,
                               .regret = std::max(us / best_us - 1, 0.0)});
  }
  for (MeasuredProblem& problem : problems)
    std::ranges::stable_sort(problem.designs, {}, &MeasuredDesign::regret);
  return problems;
}

Verdict judge(const MeasuredProblem& measured, const DeviceInfo& device,
              const model::WarpSpecializedConstants& constants) {
  // Designs within 1 % of the first prediction count nearly as much as it; noise is as large.
  constexpr double nearness = 0.01;
  constexpr double good = 0.5;  // regret up to which times are compared, too
  const templates::Sm90Prediction prediction(measured.problem, measured.designs.front().rules,
                                             device, constants);
  std::vector<double> predicted;
  for (const MeasuredDesign& design : measured.designs)
    predicted.push_back(prediction.microseconds(design.tile));
  const auto first = std::ranges::min_element(predicted);
  double weights = 0;
  double regrets = 0;
  double squares = 0;
  double count = 0;
  for (std::size_t at = 0; at < predicted.size(); ++at) {
    const double regret = measured.designs[at].regret;
    const double weight = std::exp(-(predicted[at] / *first - 1) / nearness);
    weights += weight;
    regrets += weight * regret;
    if (regret > good) continue;
    const double error = std::log(predicted[at] / measured.designs[at].microseconds);
    squares += error * error;
    count += 1;
  }
  const auto choice = static_cast<std::size_t>(first - predicted.begin());
  return {.choice = choice,
          .choice_us = *first,
          .regret = measured.designs[choice].regret,
          .expected_regret = regrets / weights,
          .log_error = std::sqrt(squares / count)};
}

}  // namespace gemmery::tests
