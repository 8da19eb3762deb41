// SPDX-License-Identifier: Apache-2.0
// The search for the fastest kernel of one problem: screening, verification, timing in turn.
#pragma once

#include <gemmery/tune.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/timed_kernel.hpp"

namespace gemmery::api {

class TuningSearch {
 public:
  // The candidates are the kernels that discovery finds without stored results.
  TuningSearch(const ProblemLine& line, const DeviceInfo& device, const TuneOptions& options);

  bool has_candidates() const noexcept { return !candidates_.empty(); }

  // The winner and what became of the others; `conditions` and `tuned_at` are left to the caller.
  TuneResult run();

 private:
  struct Candidate {
    RankedKernel kernel;
    std::string outcome = {};  // empty while it may still win
    std::unique_ptr<TimedKernel> timed = {};
    double time_us = 0;
    bool has_passed = false;  // verification
  };

  MeasureOptions measure_options(double sample_ms) const;
  double spent_share() const;
  void tell(std::string_view stage, std::string_view kernel = {}) const;

  void screen();
  void prepare(Candidate& candidate, double fastest_us);
  double fastest_verified_us() const;
  std::optional<double> time_of_slow_run(const Kernel& kernel, double fastest_us) const;
  std::vector<std::size_t> choose_finalists();
  bool passes(Candidate& candidate);
  bool time_in_turn(const std::vector<std::size_t>& finalists);
  std::vector<std::vector<double>> times_of(const std::vector<std::size_t>& finalists) const;
  void report_finalists(const std::vector<std::size_t>& finalists, TuningEntry& entry);
  TuneResult result(TuneOutcome outcome, TuningEntry entry) const;

  const ProblemLine& line_;
  const TuneOptions& options_;
  std::chrono::steady_clock::time_point start_;
  TimedOperands operands_;
  std::vector<Candidate> candidates_;
};

}  // namespace gemmery::api
