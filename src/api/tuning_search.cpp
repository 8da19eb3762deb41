// SPDX-License-Identifier: Apache-2.0
#include "api/tuning_search.hpp"

#include <gemmery/family.hpp>
#include <gemmery/verify.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "api/stored_choices.hpp"
#include "kernel/rank.hpp"
#include "tune/decision.hpp"

namespace gemmery::api {
namespace {

// Screening: one sample of each candidate in each of these passes; the least counts, which other
// work on the machine disturbs least.
constexpr int screening_passes = 5;
constexpr double screening_ms = 1;
// What is slower than the fastest by this factor is no finalist; what is predicted to be slower by
// the second, or is by the third in its first run, which anything may have delayed, is not
// screened.
constexpr double finalist_factor = 4;
constexpr double hopeless_prediction = 10;
constexpr double hopeless_run = 50;
constexpr double shortest_slow_us = 100'000;  // below it, samples cost less than an error
constexpr std::size_t most_finalists = 4;

// Timing in turn. Samples are short, so that most of them fall between two interruptions by other
// work.
constexpr double sample_ms = 0.5;
constexpr std::size_t fewest_rounds = 10;  // below it there is no interval (tune/decision.cpp)
constexpr std::size_t most_rounds = 400;

// Shares of the budget after which a stage begins nothing new.
constexpr double screening_share = 0.5;
constexpr double verifying_share = 0.75;

// Candidates of families that come last in lists until they are measured, beside the others.
constexpr std::size_t most_unpredicted = 4;

constexpr const char* budget_spent = "not timed: the budget was spent";

std::vector<RankedKernel> candidates_for(const ProblemLine& line, const DeviceInfo& device,
                                         const TuneOptions& options) {
  std::vector<RankedKernel> kernels = rank_without_choices({line.problem, device}, options.filter);
  const auto most = static_cast<std::size_t>(options.candidates);
  if (most == 0) return kernels;
  std::vector<RankedKernel> candidates;
  std::size_t predicted = 0;
  std::size_t unpredicted = 0;
  for (const RankedKernel& kernel : kernels) {
    const bool is_taken =
        kernel::ranks_last(kernel) ? unpredicted++ < most_unpredicted : predicted++ < most;
    if (is_taken) candidates.push_back(kernel);
  }
  return candidates;
}

// Of a finalist with the winner.
std::string comparison_text(double percent) {
  if (percent >= 0) return fmt::format("{:.1f} % slower", percent);
  const bool is_little = percent > -100 * tuning::smallest_gain;
  return fmt::format("{:.1f} % faster, {}", -percent,
                     is_little ? "which is too little" : "but not beyond noise");
}

}  // namespace

TuningSearch::TuningSearch(const ProblemLine& line, const DeviceInfo& device,
                           const TuneOptions& options)
    : line_(line),
      options_(options),
      start_(std::chrono::steady_clock::now()),
      operands_(line, device, measure_options(screening_ms)) {
  for (const RankedKernel& kernel : candidates_for(line, device, options))
    candidates_.push_back({.kernel = kernel});
}

MeasureOptions TuningSearch::measure_options(double milliseconds) const {
  return {.device = options_.device,
          .sample_ms = milliseconds,
          .warmup_ms = milliseconds,
          .seed = options_.seed};
}

double TuningSearch::spent_share() const {
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
  return spent.count() / options_.budget_s;
}

void TuningSearch::tell(std::string_view stage, std::string_view kernel) const {
  if (options_.progress) options_.progress({stage, kernel, std::min(spent_share(), 1.0)});
}

// --- verification -------------------------------------------------------------------------------

bool TuningSearch::passes(Candidate& candidate) {
  tell("verifying", candidate.kernel.name());
  try {
    const VerifyReport report =
        verify(line_, candidate.kernel, {.seed = options_.seed, .device = options_.device});
    if (report.passed) return true;
    candidate.outcome = fmt::format(
        "wrong: {}", report.first_failure.empty() ? "it wrote outside out" : report.first_failure);
  } catch (const std::exception& error) {
    candidate.outcome = fmt::format("failed: {}", error.what());
  }
  return false;
}

// --- screening ----------------------------------------------------------------------------------

// Of those that are known to be right: a wrong kernel may be as fast as it likes.
double TuningSearch::fastest_verified_us() const {
  double fastest = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : candidates_)
    if (candidate.has_passed) fastest = std::min(fastest, candidate.time_us);
  return fastest;
}

// On the CPU: the time of one run, if that is hopeless. It has run before, so that what a library
// makes at the first run is there.
std::optional<double> TuningSearch::time_of_slow_run(const Kernel& kernel, double fastest) const {
  if (!options_.device.is_cpu()) return std::nullopt;
  const auto begin = std::chrono::steady_clock::now();
  kernel.run(operands_.arguments().front(), {.stream = operands_.stream()});
  const std::chrono::duration<double, std::micro> run = std::chrono::steady_clock::now() - begin;
  const bool is_hopeless = run.count() > hopeless_run * fastest && run.count() > shortest_slow_us;
  return is_hopeless ? std::optional(run.count()) : std::nullopt;
}

// Compiles, runs once and times once, unless it is hopeless.
void TuningSearch::prepare(Candidate& candidate, double fastest) {
  const double predicted = candidate.kernel.predicted_us;
  if (std::isfinite(predicted) && predicted > hopeless_prediction * fastest) {
    candidate.outcome =
        fmt::format("not timed: predicted {:.0f} times as slow", predicted / fastest);
    return;
  }
  candidate.timed = std::make_unique<TimedKernel>(candidate.kernel, operands_);
  if (const auto run_us = time_of_slow_run(candidate.kernel, fastest)) {
    candidate.time_us = *run_us;
    candidate.outcome = fmt::format("{:.1f} times as slow in a single run", *run_us / fastest);
    return;
  }
  candidate.timed->warm_up(measure_options(screening_ms));
  candidate.timed->sample();
  candidate.time_us = candidate.timed->times_us().back();
}

// What is faster than all before is verified at once, since others are compared with it.
void TuningSearch::screen() {
  for (Candidate& candidate : candidates_) {
    if (spent_share() > screening_share && std::isfinite(fastest_verified_us())) {
      candidate.outcome = budget_spent;
      continue;
    }
    tell("screening", candidate.kernel.name());
    const double fastest = fastest_verified_us();
    try {
      prepare(candidate, fastest);
    } catch (const std::exception& error) {
      candidate.timed.reset();
      candidate.outcome = fmt::format("failed: {}", error.what());
    }
    if (candidate.outcome.empty() && candidate.time_us < fastest)
      candidate.has_passed = passes(candidate);
  }
  for (int pass = 1; pass < screening_passes && spent_share() < screening_share; ++pass) {
    for (Candidate& candidate : candidates_) {
      if (!candidate.outcome.empty()) continue;
      candidate.timed->sample();
      candidate.time_us = std::min(candidate.time_us, candidate.timed->times_us().back());
    }
    tell("screening");
  }
}

// --- finalists ----------------------------------------------------------------------------------

// The fastest ones that pass, in the model's order.
std::vector<std::size_t> TuningSearch::choose_finalists() {
  std::vector<std::size_t> order;
  for (std::size_t index = 0; index < candidates_.size(); ++index)
    if (candidates_[index].outcome.empty()) order.push_back(index);
  std::ranges::stable_sort(order, {},
                           [&](std::size_t index) { return candidates_[index].time_us; });
  std::vector<std::size_t> finalists;
  for (const std::size_t index : order) {
    Candidate& candidate = candidates_[index];
    const double slowness =
        finalists.empty() ? 1 : candidate.time_us / candidates_[finalists.front()].time_us;
    if (slowness > finalist_factor || finalists.size() == most_finalists) {
      candidate.outcome = fmt::format("{:.1f} times as slow when screened", slowness);
    } else if (!finalists.empty() && spent_share() > verifying_share) {
      candidate.outcome = budget_spent;
    } else if (candidate.has_passed || passes(candidate)) {
      finalists.push_back(index);
    }
  }
  std::ranges::sort(finalists);
  return finalists;
}

// --- timing in turn -----------------------------------------------------------------------------

std::vector<std::vector<double>> TuningSearch::times_of(
    const std::vector<std::size_t>& finalists) const {
  std::vector<std::vector<double>> times;
  for (const std::size_t index : finalists) times.push_back(candidates_[index].timed->times_us());
  return times;
}

// False if the budget was spent before there were enough rounds. Each round begins with another
// kernel, since one that follows a certain other may find the cache in a certain state.
bool TuningSearch::time_in_turn(const std::vector<std::size_t>& finalists) {
  for (const std::size_t index : finalists)
    candidates_[index].timed->warm_up(measure_options(sample_ms));
  const std::size_t count = finalists.size();
  for (std::size_t round = 0; round < most_rounds; ++round) {
    if (round >= fewest_rounds && tuning::decide(times_of(finalists)).is_settled) return true;
    if (spent_share() > 1) return round >= fewest_rounds;
    for (std::size_t turn = 0; turn < count; ++turn)
      candidates_[finalists[(round + turn) % count]].timed->sample();
    tell("timing");
  }
  return true;
}

void TuningSearch::report_finalists(const std::vector<std::size_t>& finalists, TuningEntry& entry) {
  const auto times = times_of(finalists);
  const std::size_t winner = tuning::decide(times).winner;
  entry.kernel = candidates_[finalists[winner]].kernel.name();
  entry.median_us = tuning::median_of(times[winner]);
  entry.rounds = static_cast<int>(times[winner].size());
  for (std::size_t place = 0; place < finalists.size(); ++place) {
    Candidate& candidate = candidates_[finalists[place]];
    candidate.time_us = tuning::median_of(times[place]);
    const double percent = 100 * (candidate.time_us / entry.median_us - 1);
    candidate.outcome = place == winner ? "winner" : comparison_text(percent);
  }
}

TuneResult TuningSearch::result(TuneOutcome outcome, TuningEntry entry) const {
  entry.problem = to_string(line_.problem);
  for (const Candidate& candidate : candidates_)
    entry.candidates.push_back(
        {.kernel = candidate.kernel.name(),
         .predicted_us = candidate.kernel.predicted_us,
         .time_us = candidate.time_us,
         .outcome = candidate.outcome.empty() ? "undecided" : candidate.outcome});
  return {.outcome = outcome, .entry = std::move(entry)};
}

TuneResult TuningSearch::run() {
  screen();
  const std::vector<std::size_t> finalists = choose_finalists();
  if (finalists.empty()) return result(TuneOutcome::none_passed, {});
  if (!time_in_turn(finalists)) return result(TuneOutcome::undecided, {});
  TuningEntry entry;
  report_finalists(finalists, entry);
  return result(TuneOutcome::stored, std::move(entry));
}

}  // namespace gemmery::api
