// SPDX-License-Identifier: Apache-2.0
// Scales, zero points and tensors of operands' programs of a problem as tensors of a trial or a
// measurement.
#pragma once

#include <string>
#include <vector>

#include <gemmery/problem.hpp>
#include <gemmery/scales.hpp>
#include <gemmery/tensor.hpp>

#include "api/guarded_operand.hpp"

namespace gemmery::api {

// One of them, with the extents of its matrix in the problem.
struct CompanionTensor {
  std::string name;
  CompanionType type;
  Extents3 extents;
  bool is_of_a;
  bool is_zero_point;
  bool is_of_program = false;
};
// A's scales, its zero point, the tensors of its program, then B's.
std::vector<CompanionTensor> companion_tensors(const GemmProblem& problem);

// Numbers for its elements: scales of both signs, small integers as zero points.
Numbers companion_numbers(const CompanionTensor& companion, std::uint64_t seed);

// A and B with these tensors, in the order of `companion_tensors`.
struct ScaledPair {
  ScaledOperand a, b;
};
ScaledPair bind_companions(const ProblemLine& line, const Tensor& a, const Tensor& b,
                           const std::vector<Tensor>& tensors);

}  // namespace gemmery::api
