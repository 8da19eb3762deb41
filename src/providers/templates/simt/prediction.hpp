// SPDX-License-Identifier: Apache-2.0
// The predicted times of simt kernels, by which discovery sorts.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include "model/tiled_gemm.hpp"
#include "providers/templates/simt/design.hpp"

namespace gemmery::templates {

// Predicts the times of several kernels for the same problem.
class SimtPrediction {
 public:
  SimtPrediction(const GemmProblem& problem, SimtArithmetic arithmetic, const DeviceInfo& device);

  // The time of one launch without the padding.
  double microseconds(const SimtTile& tile, const OperandRules& rules) const;

 private:
  model::TiledGemmModel model_;
  SimtArithmetic arithmetic_;
  double fma_per_clock_;
};

// The factor by which a launch is slower because its tiles have rows and columns beyond the matrix:
// that work costs time even if arithmetic is not the bottleneck.
double padding_factor(const GemmProblem& problem, const SimtTile& tile);

}  // namespace gemmery::templates
