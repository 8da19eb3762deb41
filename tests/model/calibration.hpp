// SPDX-License-Identifier: Apache-2.0
// Measurements of the sm90 family by bench/calibrate (kept by tools/keep_calibration.py), and how
// well a prediction ranks by them.
#pragma once

#include <string>
#include <vector>

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include "model/warp_specialized_gemm.hpp"
#include "providers/templates/sm90/design.hpp"

namespace gemmery::tests {

struct MeasuredDesign {
  OperandRules rules;
  templates::Sm90Tile tile;
  double microseconds;
  double regret;  // its time over the shortest in the same (its last) pass, less 1
};

struct MeasuredProblem {
  std::string set;  // "listed", "skinny", "drawn" or "heldout"
  GemmProblem problem;
  std::vector<MeasuredDesign> designs;  // least regret first
};

// Throws std::runtime_error for a missing file or an invalid line. Kernels of an earlier version of
// the family count as the same designs.
std::vector<MeasuredProblem> read_calibration(const std::string& path);

// The quality of predictions for one problem.
struct Verdict {
  std::size_t choice;      // the design that is predicted to be the fastest
  double choice_us;        // its predicted time
  double regret;           // its time over the best one's, less 1
  double expected_regret;  // a differentiable mean over designs near the first
  double log_error;        // root mean square over good designs
  double spread;           // the same without a common factor of all predictions
};
Verdict judge(const MeasuredProblem& measured, const DeviceInfo& device,
              const model::WarpSpecializedConstants& constants);

}  // namespace gemmery::tests
