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
  std::string name;  // of the family's present version
  double microseconds;
};

struct TimedProblem {
  std::string set;  // "fitted", "heldout" or "groups"
  GemmProblem problem;
  std::vector<TimedKernel> kernels;  // fastest first
};

inline constexpr std::string_view timed_columns = "set,problem,kernel,microseconds";

// Of a file with these columns; rows with neither set nor problem
// belong to those above them. Throws std::runtime_error for a file that is not there and for a line
// that cannot be read.
std::vector<TimedProblem> read_timed_kernels(const std::string& path);

// The same problems as designs of sm90, for fits of that family's model; those without are left
// out.
std::vector<MeasuredProblem> sm90_problems(const std::vector<TimedProblem>& problems);

// What discovery chooses on a device, held against the times.
struct Choice {
  std::string first;          // the kernel that discovery returns first
  bool was_timed;             // whether that is one of the timed ones
  const TimedKernel* chosen;  // the first of the timed ones in discovery's order
  double predicted_us;        // for it
  double regret;              // its time over the best one's, less 1
};
Choice choose(const TimedProblem& problem, const DeviceInfo& device);

}  // namespace gemmery::tests
