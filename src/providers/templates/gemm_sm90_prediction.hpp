// SPDX-License-Identifier: Apache-2.0
// How fast sm90 kernels are on a problem: what discovery sorts by.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include "model/warp_specialized_gemm.hpp"
#include "providers/templates/gemm_sm90_design.hpp"

namespace gemmery::templates {

// Predicts one design after another on the same problem, which `rules` must serve.
class Sm90Prediction {
 public:
  Sm90Prediction(const GemmProblem& problem, const OperandRules& rules, const DeviceInfo& device,
                 const model::WarpSpecializedConstants& constants = {}) noexcept;

  model::WarpSpecializedParts parts(const Sm90Tile& tile) const noexcept;
  // Of one launch.
  double microseconds(const Sm90Tile& tile) const noexcept { return parts(tile).total_us(); }

 private:
  OperandRules rules_;
  model::WarpSpecializedModel model_;
};

}  // namespace gemmery::templates
