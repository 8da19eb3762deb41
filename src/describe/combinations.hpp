// SPDX-License-Identifier: Apache-2.0
// The table of valid combinations: every math instruction that can be described, and the tensor
// types that it requires.
#pragma once

#include <gemmery/describe.hpp>

#include <array>
#include <span>

namespace gemmery::describe {

struct Combination {
  OpcodeClass opcode_class;
  std::array<int, 3> instruction_shape;
  Element element_a;
  Element element_b;
  Element element_accumulator;
  MathOperation math_operation;
  DType a;  // as the tensors are stored
  DType b;
  Math math;  // how the products are formed
  int least_capability = 80;
};

std::span<const Combination> combinations();

// The row of an instruction. Throws Error naming the first field whose value no row combines with
// the fields before it.
const Combination& find_combination(const MathInstruction& instruction);

}  // namespace gemmery::describe
