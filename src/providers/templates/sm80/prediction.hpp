// SPDX-License-Identifier: Apache-2.0
// The predicted times of sm80 kernels, by which discovery sorts.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include "model/tiled_gemm.hpp"
#include "providers/templates/sm80/design.hpp"

namespace gemmery::templates {

// Predicts the times of several kernels for the same problem.
class Sm80Prediction {
 public:
  Sm80Prediction(const GemmProblem& problem, const OperandRules& types, const DeviceInfo& device);

  // The time of one launch.
  double microseconds(const Sm80Tile& tile, const OperandRules& rules) const;

 private:
  GemmProblem problem_;
  DeviceInfo device_;
  std::int64_t groups_;  // 0: one GEMM
  double epilogue_us_;
  double fma_per_clock_;  // of a multiprocessor, on tensor cores
};

// Blocks that fit on a multiprocessor, by their shared memory and registers.
int resident_blocks(const abi::Sm80Design& design, const DeviceInfo& device) noexcept;

// Multiply-adds per clock and multiprocessor by mma.sync for operands of these types; 0 if the
// device's tensor cores do not support them.
double mma_per_clock(DType a, DType accumulator, Math math, Target device) noexcept;

}  // namespace gemmery::templates
