// SPDX-License-Identifier: Apache-2.0
// Runs the tests; or, with --replay 'PROBLEM' --kernel NAME --seed N --fill KIND …, as printed by a
// failure, that one case.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include <gemmery/gemmery.hpp>

#include "tests/conformance/mutants.hpp"
#include "tests/conformance/suite.hpp"

namespace gemmery::conformance {
namespace {

using Words = std::map<std::string, std::string>;

Words read_words(int count, char** words) {
  Words options;
  for (int at = 1; at < count; ++at) {
    const std::string word = words[at];
    const bool has_value = at + 1 < count && std::string(words[at + 1]).substr(0, 2) != "--";
    options[word] = has_value ? words[++at] : "";
  }
  return options;
}

Fill read_fill(const std::string& word) {
  return word == "integers" ? Fill::integers : word == "uniform" ? Fill::uniform : Fill::normal;
}

api::Trial read_trial(const Words& words) {
  const auto value = [&](const std::string& name, const std::string& silent) {
    return words.contains(name) ? words.at(name) : silent;
  };
  api::Trial trial;
  trial.line = parse_problem(words.at("--replay"));
  trial.options.seed = std::strtoull(value("--seed", "0").c_str(), nullptr, 0);
  trial.options.fill = read_fill(value("--fill", "normal"));
  if (words.contains("--device")) trial.options.device = parse_device(words.at("--device")).value();
  if (words.contains("--schedule"))
    set_emulator_seed(std::strtoull(words.at("--schedule").c_str(), nullptr, 0));
  trial.options.guard_bands = !words.contains("--no-guard-bands");
  trial.in_place = words.contains("--in-place");
  trial.nan_inputs = words.contains("--nan-inputs");
  trial.pattern = static_cast<api::Pattern>(std::atoi(value("--pattern", "0").c_str()));
  trial.scale = std::strtod(value("--scale", "1").c_str(), nullptr);
  trial.repeats = std::atoi(value("--repeats", "1").c_str());
  trial.max_multiprocessors = std::atoi(value("--multiprocessors", "0").c_str());
  return trial;
}

int replay(const Words& words) {
  register_family(make_mutants());
  const api::Trial trial = read_trial(words);
  const auto kernel = find_kernel(words.at("--kernel"));
  if (!kernel) {
    std::cerr << "no kernel is called " << words.at("--kernel") << "\n";
    return 2;
  }
  const VerifyReport report = api::run_trial(trial, *kernel);
  std::cout << (report.passed ? "passed" : "failed") << ", " << report.method << ", seed "
            << report.seed << ", " << report.mismatches << " of " << report.elements
            << " elements wrong, worst ratio " << report.worst_ratio << ", "
            << report.guard_violations << " bytes changed outside out\n"
            << report.first_failure << "\n";
  return report.passed ? 0 : 1;
}

}  // namespace
}  // namespace gemmery::conformance

int main(int count, char** words) {
  const auto options = gemmery::conformance::read_words(count, words);
  if (options.contains("--replay")) {
    try {
      return gemmery::conformance::replay(options);
    } catch (const std::exception& error) {
      std::cerr << error.what() << "\n";
      return 2;
    }
  }
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
