// SPDX-License-Identifier: Apache-2.0
// Reads files that tools/keep_calibration.py extracts from the output of bench/calibrate.
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

constexpr std::string_view columns = "set,problem,kernel,pass,microseconds";

// A kernel's name may begin here; the text before is then that of the row above.
constexpr std::string_view shared_up_to = "_acc-";

std::array<std::string_view, 5> fields_of(std::string_view line) {
  std::array<std::string_view, 5> fields;
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

// The part of the first kernel's name that all kernels of the problem share.
std::string shared_part(std::string_view name) {
  const std::size_t end = name.find(shared_up_to);
  if (end == std::string_view::npos)
    throw std::runtime_error("not a kernel of sm90: " + std::string(name));
  return std::string(name.substr(0, end + shared_up_to.size()));
}

templates::Sm90Parts read_kernel(std::string_view name) {
  const std::string rest(name.substr(std::min(name.find('_'), name.size())));
  const auto parts =
      templates::parse_sm90_name(fmt::format("sm90v{}{}", templates::sm90_version, rest));
  if (!parts) throw std::runtime_error("not a kernel of sm90: " + std::string(name));
  return *parts;
}

}  // namespace

// Adds the designs of one pass over a problem's kernels; their times are relative to the fastest in
// the pass. Later passes replace results of earlier ones.
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
  std::vector<MeasuredDesign> rows;  // the pass that is being read
  std::string shared;                // the shared part of the kernels' names
  std::string last_pass;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#') || line == columns) continue;
    const auto [set, problem, kernel, pass, microseconds] = fields_of(line);
    const bool begins_problem = !problem.empty();
    if (begins_problem || pass != last_pass) keep_pass(problems, rows);
    if (begins_problem) {
      problems.push_back(
          {.set = std::string(set), .problem = parse_problem(problem).problem, .designs = {}});
      shared = shared_part(kernel);
    }
    last_pass = pass;
    const templates::Sm90Parts parts =
        read_kernel(begins_problem ? std::string(kernel) : shared + std::string(kernel));
    rows.push_back({.rules = parts.rules,
                    .tile = parts.tile,
                    .microseconds = std::stod(std::string(microseconds)),
                    .regret = 0});
  }
  keep_pass(problems, rows);
  for (MeasuredProblem& problem : problems)
    std::ranges::stable_sort(problem.designs, {}, &MeasuredDesign::regret);
  return problems;
}

Verdict judge(const MeasuredProblem& measured, const DeviceInfo& device,
              const model::WarpSpecializedConstants& constants) {
  // Designs within 1 % of the first prediction have nearly its weight, since noise is as large.
  constexpr double nearness = 0.01;
  constexpr double good = 0.5;  // times are compared up to this regret
  // To order kernels, predictions of the best ones must be correct relative to each other.
  constexpr double nearness_to_best = 0.12;
  const auto predict = [&](bool is_turned) {
    return templates::Sm90Prediction(measured.problem, measured.designs.front().rules, device,
                                     is_turned, constants);
  };
  const templates::Sm90Prediction predictions[] = {predict(false), predict(true)};
  std::vector<double> predicted;
  for (const MeasuredDesign& design : measured.designs)
    predicted.push_back(
        predictions[templates::is_turned(design.rules, design.tile)].microseconds(design.tile));
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
