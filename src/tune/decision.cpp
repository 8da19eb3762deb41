// SPDX-License-Identifier: Apache-2.0
// Ratios by round: what slows a whole round down cancels out.
#include "tune/decision.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gemmery::tuning {
namespace {

// On each side of an interval.
constexpr double likely_error = 0.025;
constexpr double sure_error = 0.001;

// How many of n values may be left out at each end: the largest k for which at most k - 1 of n
// values lie below the median with no more than the error's probability.
std::size_t values_left_out(std::size_t n, double error_probability) {
  double term = std::pow(0.5, static_cast<double>(n));  // of 0 values below it
  double sum = term;
  std::size_t left_out = 0;
  while (sum <= error_probability) {
    ++left_out;
    term *= static_cast<double>(n - left_out + 1) / static_cast<double>(left_out);
    sum += term;
  }
  return left_out;
}

TimeRatio::Interval interval_of(const std::vector<double>& sorted, double error_probability) {
  const std::size_t left_out = values_left_out(sorted.size(), error_probability);
  if (left_out == 0) return {.low = 0, .high = std::numeric_limits<double>::infinity()};
  return {.low = sorted[left_out - 1], .high = sorted[sorted.size() - left_out]};
}

TimeRatio ratio_of(const std::vector<double>& times, const std::vector<double>& fastest) {
  std::vector<double> ratios(times.size());
  for (std::size_t round = 0; round < times.size(); ++round)
    ratios[round] = times[round] / fastest[round];
  std::ranges::sort(ratios);
  return {.median = median_of(ratios),
          .likely = interval_of(ratios, likely_error),
          .sure = interval_of(ratios, sure_error)};
}

std::size_t index_of_fastest(std::span<const std::vector<double>> times_us) {
  std::size_t fastest = 0;
  for (std::size_t index = 1; index < times_us.size(); ++index)
    if (median_of(times_us[index]) < median_of(times_us[fastest])) fastest = index;
  return fastest;
}

bool is_slower(const TimeRatio& ratio) {
  return ratio.median > 1 + smallest_gain && ratio.likely.low > 1;
}

bool is_settled(const TimeRatio& ratio) {
  return ratio.sure.low > 1 + smallest_gain || ratio.sure.high <= 1 + smallest_gain;
}

}  // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Decision decide(std::span<const std::vector<double>> times_us) {
  const std::size_t fastest = index_of_fastest(times_us);
  Decision decision{.winner = fastest, .ratios = {}, .is_settled = true};
  for (std::size_t index = 0; index < times_us.size(); ++index) {
    const TimeRatio ratio =
        index == fastest ? TimeRatio{} : ratio_of(times_us[index], times_us[fastest]);
    if (!is_slower(ratio)) decision.winner = std::min(decision.winner, index);
    decision.is_settled = decision.is_settled && is_settled(ratio);
    decision.ratios.push_back(ratio);
  }
  return decision;
}

}  // namespace gemmery::tuning
