// SPDX-License-Identifier: Apache-2.0
// Programs of A and B: the type that is multiplied, their rules, the same for operands in memory
// and for problems in text, and their views.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/operand_program.hpp>
#include <gemmery/problem.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operation/companions.hpp"
#include "operation/epilogue_operands.hpp"
#include "operation/matrix.hpp"

namespace gemmery::operation {

constexpr ProductOperand product_operand(bool is_a) noexcept {
  return is_a ? ProductOperand::a : ProductOperand::b;
}

const std::optional<OperandProgramType>& program_of(const GemmProblem& problem, bool is_a) noexcept;
bool has_operand_programs(const GemmProblem& problem) noexcept;

// The type of the elements that are multiplied: the operand's own without a program.
DType multiplied_type(const GemmProblem& problem, bool is_a) noexcept;

// Throws Error for types of products, of accumulators and a math that do not fit together
// (types.hpp): of the elements as they are stored, and as they are multiplied.
void check_product_types(const GemmProblem& problem);

// "a.gate"
std::string program_operand_name(bool is_a, std::string_view name);

// The extents of memory of a tensor of the program: those of the operand, with a matrix for each
// group only if it varies with the group.
MatrixExtents program_extents(const GemmProblem& problem, bool is_a,
                              const MatrixType& matrix) noexcept;

// Interns a program with its inputs in its order. Throws Error (invalid_argument, unsupported) for
// element types that are no numbers by themselves.
OperandProgramType describe_program(const epilogue::Program& program, bool is_a,
                                    const std::vector<EpilogueMatrix>& inputs);

// Throws Error (invalid_argument, unsupported) naming the program, for forms of problems and
// companions beside which it is not defined.
void check_operand_programs(const GemmProblem& problem);

// The program as given, with views of its tensors.
struct ProgramView {
  OperandProgramType type;
  std::vector<EpilogueOperand> memory;
};
// Throws Error (invalid_argument) for shapes, devices and memory that do not fit the operand.
ProgramView view_program(const OperandProgram& program, bool is_a, const OperandExtents& extents,
                         Device device);

}  // namespace gemmery::operation
