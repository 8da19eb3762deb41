// SPDX-License-Identifier: Apache-2.0
// A and B of any problem as one matrix of memory each, and the tensors of a convolution in it.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/problem.hpp>

#include "api/bound_problem.hpp"
#include "api/guarded_operand.hpp"
#include "operation/matrix.hpp"

namespace gemmery::api {

Extents3 as_extents3(const operation::MatrixExtents& extents);

// The memory of A or B.
struct OperandMemory {
  MatrixType type;
  Extents3 extents;
};
OperandMemory memory_of_a(const GemmProblem& problem);
OperandMemory memory_of_b(const GemmProblem& problem);

// Poisons the bytes between the elements of A or B of a convolution, which must not be read.
void poison_gaps(const GemmProblem& problem, bool is_a, GuardedOperand& operand);

// The arguments of a convolution in such memory.
GemmArguments bind_convolution(const ProblemLine& line, const BoundOperands& operands,
                               const GemmOptions& options);

}  // namespace gemmery::api
