// SPDX-License-Identifier: Apache-2.0
// Finds cuBLASLt's epilogue for a program: D = activation(alpha * accum + beta * C + bias).
#pragma once

#include <gemmery/problem.hpp>
#include <gemmery/status.hpp>

#include <cstdint>

namespace gemmery::cublaslt {

enum class Activation : std::uint8_t { none, relu };

// The number of an operand among those of the program; none if there is no such operand.
inline constexpr int no_operand = -1;

// constant * the number of an operand, if there is one. If it is guarded, a number of 0 makes 0 of
// any value: where(number == 0, 0, number * value).
struct Factor {
  double constant = 1;
  int number = no_operand;
  bool is_guarded = false;
};

// float32 tensors by which the accumulator is multiplied.
struct Scales {
  int first_of_all = no_operand;  // one value
  int second_of_all = no_operand;
  int of_rows = no_operand;     // one for each row
  int of_columns = no_operand;  // one for each column
};

struct EpilogueForm {
  bool is_default = true;  // alpha, beta and C are those of the arguments
  Activation activation = Activation::none;
  Factor alpha = {};
  Factor beta = {};  // used only with a C
  Scales scales = {};
  int c = no_operand;
  int bias = no_operand;
};

// Success if the program of a problem has this form, else the first node that has not.
Status match_epilogue(const GemmProblem& problem, EpilogueForm& form);

}  // namespace gemmery::cublaslt
