// SPDX-License-Identifier: Apache-2.0
// Two ways of doing the same, timed in interleaved pairs on a machine that others may use.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <vector>

namespace gemmery::bench {

using Run = std::function<void()>;

inline double seconds_of(const Run& run, int repeats) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / repeats;
}

// Repeats that take about 10 ms.
inline int choose_repeats(const Run& run) {
  run();
  return std::clamp(static_cast<int>(0.01 / std::max(1e-7, seconds_of(run, 3))), 1, 100000);
}

inline double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

// Prints the median ratio of theirs to ours (above 1: ours is faster), its 10th and 90th
// percentile, the median rates, and the ratio and rates of the best times. Returns the median
// ratio.
inline double print_pairs(const Run& our_run, const Run& their_run, int pairs, double gflop) {
  const int our_repeats = choose_repeats(our_run);
  const int their_repeats = choose_repeats(their_run);
  std::vector<double> ratios, ours, theirs;
  for (int i = 0; i < pairs; ++i) {
    // The order alternates.
    const bool ours_first = i % 2 == 0;
    if (ours_first) ours.push_back(seconds_of(our_run, our_repeats));
    theirs.push_back(seconds_of(their_run, their_repeats));
    if (!ours_first) ours.push_back(seconds_of(our_run, our_repeats));
    ratios.push_back(theirs.back() / ours.back());
  }
  std::printf(
      "ratio %.3f (%.3f … %.3f)  ours %.1f, theirs %.1f GFLOP/s; of best times %.3f, ours %.1f, "
      "theirs %.1f\n",
      quantile(ratios, 0.5), quantile(ratios, 0.1), quantile(ratios, 0.9),
      gflop / quantile(ours, 0.5), gflop / quantile(theirs, 0.5),
      quantile(theirs, 0) / quantile(ours, 0), gflop / quantile(ours, 0),
      gflop / quantile(theirs, 0));
  std::fflush(stdout);
  return quantile(ratios, 0.5);
}

}  // namespace gemmery::bench
