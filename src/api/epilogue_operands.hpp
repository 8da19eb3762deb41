// SPDX-License-Identifier: Apache-2.0
// A problem's epilogue as arguments: the extents of its tensors and the values of its numbers.
#pragma once

#include <optional>
#include <vector>

#include <gemmery/epilogue.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/tensor.hpp>

#include "api/guarded_operand.hpp"

namespace gemmery::api {

// A tensor of the epilogue; numbers have none.
struct EpilogueTensor {
  std::size_t index;  // among the operands of the rules
  MatrixType type;
  Extents3 extents;  // of (L, M, N); 1 along what a reduction reduces
  bool is_result;
};
std::vector<EpilogueTensor> epilogue_tensors(const GemmProblem& problem);

// The epilogue with these tensors, in the order of `epilogue_tensors`, and the line's numbers; 1
// for missing ones. Nothing for the default program.
std::optional<EpilogueArguments> bind_epilogue(const ProblemLine& line,
                                               const std::vector<Tensor>& tensors);

}  // namespace gemmery::api
