// SPDX-License-Identifier: Apache-2.0
// How fast simt kernels are on a problem: what discovery sorts by.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include "model/tiled_gemm.hpp"
#include "providers/templates/simt/design.hpp"

namespace gemmery::templates {

// Predicts one kernel after another on the same problem.
class SimtPrediction {
 public:
  SimtPrediction(const GemmProblem& problem, SimtArithmetic arithmetic, const DeviceInfo& device);

  // Of one launch, but for the padding.
  double microseconds(const SimtTile& tile, const OperandRules& rules) const;

 private:
  model::TiledGemmModel model_;
  SimtArithmetic arithmetic_;
  double fma_per_clock_;
};

// How much longer a launch takes for its tiles' rows and columns beyond the matrix: that work is
// lost even where arithmetic is not what takes the time.
double padding_factor(const GemmProblem& problem, const SimtTile& tile);

}  // namespace gemmery::templates
