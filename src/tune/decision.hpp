// SPDX-License-Identifier: Apache-2.0
// The winner among kernels that were timed in turn.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gemmery::tuning {

// A kernel is not worth a change if it is faster by no more than this share.
inline constexpr double smallest_gain = 0.02;

// A kernel's time over the fastest one's: the median over rounds, and two intervals that hold the
// true median, whatever the distribution of the noise (the sign test): with 95 %, by which kernels
// are judged in the end, and with 99.8 %, by which timing may end early, although it is asked after
// each round.
struct TimeRatio {
  struct Interval {
    double low = 1;
    double high = 1;
  };
  double median = 1;
  Interval likely = {};
  Interval sure = {};
};

struct Decision {
  std::size_t winner = 0;
  std::vector<TimeRatio> ratios;  // to the kernel of the lowest median
  // False if further rounds may change whether a kernel is slower by more than the smallest gain.
  bool is_settled = false;
};

double median_of(std::vector<double> values);

// `times_us`: one row for each kernel, the preferred one first; element r of each is of round r.
// The winner is the first kernel that is not slower than the fastest by more than the smallest gain
// and beyond noise: a later kernel wins only against a preferred one that is shown to be slower.
Decision decide(std::span<const std::vector<double>> times_us);

}  // namespace gemmery::tuning
