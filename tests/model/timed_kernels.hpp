// SPDX-License-Identifier: Apache-2.0
// Times of kernels of all families, by their names, and the ranking of discovery for the same
// problems.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include "tests/model/calibration.hpp"

namespace gemmery::tests {

struct TimedKernel {
  std::string name;  // in the family's present version
  double microseconds;
};

struct TimedProblem {
  std::string set;  // "fitted", "heldout" or "groups"
  GemmProblem problem;
  std::vector<TimedKernel> kernels;  // fastest first
};

inline constexpr std::string_view timed_columns = "set,problem,kernel,microseconds";

// Reads a file with these columns. Rows without set and problem belong to the problem above. Throws
// std::runtime_error for a missing file or an invalid line.
std::vector<TimedProblem> read_timed_kernels(const std::string& path);

// The same problems with designs of sm90 only, for fits of that family's model; problems without
// any are omitted.
std::vector<MeasuredProblem> sm90_problems(const std::vector<TimedProblem>& problems);

// The choice of discovery on a device, compared with the times.
struct Choice {
  std::string first;          // the kernel that discovery returns first
  bool was_timed;             // whether it is one of the timed kernels
  const TimedKernel* chosen;  // the first of the timed ones in discovery's order
  double predicted_us;        // its predicted time
  double regret;              // its time over the best one's, less 1
};
Choice choose(const TimedProblem& problem, const DeviceInfo& device);

}  // namespace gemmery::tests
