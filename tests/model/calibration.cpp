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

#include "providers/templates/sm90/prediction.hpp"

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

class Average {
 public:
  void add(double value, double weight = 1) {
    sum_ += weight * value;
    weights_ += weight;
  }
  double value() const { return sum_ / weights_; }

 private:
  double sum_ = 0;
  double weights_ = 0;
};

templates::Sm90Parts read_kernel(std::string_view name) {
  const std::string rest(name.substr(std::min(name.find('_'), name.size())));
  const auto parts =
      templates::parse_sm90_name(fmt::format("sm90v{}{}", templates::sm90_version, rest));
  if (!parts) throw std::runtime_error("not a kernel of sm90: " + std::string(name));
  return *parts;
}

}  // namespace

// Of one pass over the kernels of a problem, to the fastest of which their times are held. Passes
// follow each other, so what comes later replaces what was there.
void keep_pass(std::vector<MeasuredProblem>& problems, std::vector<MeasuredDesign>& pass) {
  if (pass.empty()) return;
  std::vector<MeasuredDesign>& known = problems.back().designs;
  const double best_us =
      std::ranges::min_element(pass, {}, &MeasuredDesign::microseconds)->microseconds;
  for (MeasuredDesign& row : pass) {
    row.regret = row.microseconds / best_us - 1;
    const auto same = std::ranges::find(known, row.tile, &MeasuredDesign::tile);
    if (same == known.end())
      known.push_back(row);
    else
      *same = row;
  }
  pass.clear();
}

std::vector<MeasuredProblem> read_calibration(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<MeasuredProblem> problems;
  std::vector<MeasuredDesign> rows;  // of the pass that is being read
  std::string last_problem;
  std::string last_pass;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#') || line.starts_with(columns)) continue;
    const auto [set, problem, kernel, pass, median, low, high, samples] = first_fields(line);
    if (problem != last_problem || pass != last_pass) keep_pass(problems, rows);
    if (problem != last_problem) {
      problems.push_back(
          {.set = std::string(set), .problem = parse_problem(problem).problem, .designs = {}});
    }
    last_problem = problem;
    last_pass = pass;
    const templates::Sm90Parts parts = read_kernel(kernel);
    const double us = std::stod(std::string(samples == short_samples ? low : median));
    rows.push_back({.rules = parts.rules, .tile = parts.tile, .microseconds = us, .regret = 0});
  }
  keep_pass(problems, rows);
  for (MeasuredProblem& problem : problems)
    std::ranges::stable_sort(problem.designs, {}, &MeasuredDesign::regret);
  return problems;
}

Verdict judge(const MeasuredProblem& measured, const DeviceInfo& device,
              const model::WarpSpecializedConstants& constants) {
  // Designs within 1 % of the first prediction count nearly as much as it; noise is as large.
  constexpr double nearness = 0.01;
  constexpr double good = 0.5;  // regret up to which times are compared, too
  // To order kernels, the best ones must be right beside each other.
  constexpr double nearness_to_best = 0.12;
  const templates::Sm90Prediction prediction(measured.problem, measured.designs.front().rules,
                                             device, constants);
  std::vector<double> predicted;
  for (const MeasuredDesign& design : measured.designs)
    predicted.push_back(prediction.microseconds(design.tile));
  const auto first = std::ranges::min_element(predicted);
  Average regrets;
  Average squares;
  Average errors;
  Average errors_squared;
  for (std::size_t at = 0; at < predicted.size(); ++at) {
    const double regret = measured.designs[at].regret;
    regrets.add(regret, std::exp(-(predicted[at] / *first - 1) / nearness));
    if (regret > good) continue;
    const double error = std::log(predicted[at] / measured.designs[at].microseconds);
    squares.add(error * error);
    const double weight = std::exp(-regret / nearness_to_best);
    errors.add(error, weight);
    errors_squared.add(error * error, weight);
  }
  const auto choice = static_cast<std::size_t>(first - predicted.begin());
  const double variance = errors_squared.value() - errors.value() * errors.value();
  return {.choice = choice,
          .choice_us = *first,
          .regret = measured.designs[choice].regret,
          .expected_regret = regrets.value(),
          .log_error = std::sqrt(squares.value()),
          .spread = std::sqrt(std::max(variance, 0.0))};
}

}  // namespace gemmery::tests
