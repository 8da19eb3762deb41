// SPDX-License-Identifier: Apache-2.0
// The C++ part of tools/fit_sm90.py: evaluates the library's model with other constants.
//
//   fit_objective CSV [DEVICE]
//
// Each line of stdin is a query. "objective [EXCEPT_SET] : NUMBERS": one number to minimise over
// the problems of all sets except that one. "report : NUMBERS": a line per problem: set, problem,
// the chosen kernel's design, regret, log error, predicted and best microseconds; then an empty
// line. NUMBERS are all of WarpSpecializedConstants in their order.
#include <algorithm>
#include <array>
#include <bit>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "tests/model/calibration.hpp"
#include "tests/model/timed_kernels.hpp"

namespace gemmery::tests {
namespace {

using Constants = model::WarpSpecializedConstants;
constexpr std::size_t constant_count = sizeof(Constants) / sizeof(double);

struct Question {
  std::string verb;
  std::string except;
  Constants constants;
};

Question read_question(const std::string& line) {
  std::istringstream words(line);
  Question question;
  words >> question.verb;
  for (std::string word; words >> word && word != ":";) question.except = word;
  std::array<double, constant_count> numbers{};
  for (double& number : numbers)
    if (!(words >> number)) throw std::runtime_error("expected more numbers: " + line);
  question.constants = std::bit_cast<Constants>(numbers);
  return question;
}

// Regret has ten times the weight of an error of the same size, since predictions are used to order
// kernels. Relative errors (spread) have the weight of regret, since regret alone would be fitted
// to noise and to the given problems. The worst regrets are added again; real problems have twice
// the weight of random ones.
double objective(const std::vector<MeasuredProblem>& problems, const DeviceInfo& device,
                 const Question& question) {
  double regrets = 0;
  double large = 0;
  double spreads = 0;
  double errors = 0;
  double count = 0;
  for (const MeasuredProblem& problem : problems) {
    if (problem.set == question.except) continue;
    const double weight = problem.set == "drawn" ? 1 : 2;
    const Verdict verdict = judge(problem, device, question.constants);
    regrets += weight * verdict.expected_regret;
    large += weight *
             (std::max(verdict.expected_regret - 0.03, 0.0) + std::max(verdict.regret - 0.04, 0.0));
    spreads += weight * verdict.spread;
    errors += weight * verdict.log_error;
    count += weight;
  }
  return (10 * (regrets + large + spreads) + errors) / count;
}

void report(const std::vector<MeasuredProblem>& problems, const DeviceInfo& device,
            const Question& question) {
  for (const MeasuredProblem& problem : problems) {
    const Verdict verdict = judge(problem, device, question.constants);
    const auto text = [&](const MeasuredDesign& design) {
      const templates::Sm90Tile& tile = design.tile;
      return fmt::format("{}_{}x{}{}_{}_{}", templates::tile_text(design.rules, tile),
                         tile.cluster_m, tile.cluster_n,
                         tile.split_k > 1 ? fmt::format("_k{}", tile.split_k) : "",
                         templates::schedule_text(tile), templates::raster_text(tile.raster));
    };
    fmt::print("{},{},{},{},{:.4f},{:.4f},{:.2f},{:.2f}\n", problem.set, to_string(problem.problem),
               text(problem.designs[verdict.choice]), text(problem.designs.front()), verdict.regret,
               verdict.log_error, verdict.choice_us, problem.designs.front().microseconds);
  }
  fmt::print("\n");
}

// The first line that is not a comment has the columns, which distinguish the two kinds of files.
std::vector<MeasuredProblem> read_problems(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line) && line.starts_with('#')) continue;
  return line == timed_columns ? sm90_problems(read_timed_kernels(path)) : read_calibration(path);
}

int answer(const std::string& path, const std::string& device_name) {
  const std::vector<MeasuredProblem> problems = read_problems(path);
  const auto device = find_device_info(device_name);
  if (!device) throw std::runtime_error("no device is called " + device_name);
  for (std::string line; std::getline(std::cin, line);) {
    const Question question = read_question(line);
    if (question.verb == "objective")
      fmt::print("{:.9g}\n", objective(problems, *device, question));
    else
      report(problems, *device, question);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace gemmery::tests

int main(int count, char** words) {
  try {
    if (count < 2) throw std::runtime_error("usage: fit_objective CSV [DEVICE]");
    return gemmery::tests::answer(words[1], count > 2 ? words[2] : "h200");
  } catch (const std::exception& error) {
    std::cerr << "fit_objective: " << error.what() << "\n";
    return 1;
  }
}
