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
  double regret;  // its time over the shortest in the same pass, less 1; of the last pass it was in
};

struct MeasuredProblem {
  std::string set;  // "listed", "skinny", "drawn" or "heldout"
  GemmProblem problem;
  std::vector<MeasuredDesign> designs;  // least regret first
};

// Throws std::runtime_error for a file that is not there and for a line that cannot be read.
// Kernels of an earlier version of the family count as the same designs.
std::vector<MeasuredProblem> read_calibration(const std::string& path);

// How a prediction does on one problem.
struct Verdict {
  std::size_t choice;      // the design that it puts first
  double choice_us;        // predicted for it
  double regret;           // its time over the best one's, less 1
  double expected_regret;  // over designs weighed by how near to first they are: differentiable
  double log_error;        // root mean square over good designs
  double spread;           // what is left of it when all predictions are off by the same factor
};
Verdict judge(const MeasuredProblem& measured, const DeviceInfo& device,
              const model::WarpSpecializedConstants& constants);

}  // namespace gemmery::tests
