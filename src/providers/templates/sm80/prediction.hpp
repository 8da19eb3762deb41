// SPDX-License-Identifier: Apache-2.0
// How fast sm80 kernels are on a problem: what discovery sorts by.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include "model/tiled_gemm.hpp"
#include "providers/templates/sm80/design.hpp"

namespace gemmery::templates {

// Predicts one kernel after another on the same problem.
class Sm80Prediction {
 public:
  Sm80Prediction(const GemmProblem& problem, const OperandRules& types, const DeviceInfo& device);

  // Of one launch.
  double microseconds(const Sm80Tile& tile, const OperandRules& rules) const;

 private:
  GemmProblem problem_;
  DeviceInfo device_;
  double epilogue_us_;
  double fma_per_clock_;  // of a multiprocessor, on tensor cores
};

// Blocks that share a multiprocessor, by their shared memory and registers.
int resident_blocks(const abi::Sm80Design& design, const DeviceInfo& device) noexcept;

// Multiply-adds of tensor cores per clock and multiprocessor by mma.sync, for operands of these
// types; 0 where the device has none for them.
double mma_per_clock(DType a, DType accumulator, Math math, Target device) noexcept;

}  // namespace gemmery::templates
