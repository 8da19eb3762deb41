// SPDX-License-Identifier: Apache-2.0
// Arguments as a line of text.
#include <gemmery/arguments.hpp>

#include <variant>

namespace gemmery {
namespace {

std::vector<double> numbers_among(const std::vector<EpilogueOperand>& operands) {
  std::vector<double> numbers;
  for (const EpilogueOperand& operand : operands)
    if (const auto* const number = std::get_if<double>(&operand.value)) numbers.push_back(*number);
  return numbers;
}

}  // namespace

ProblemLine problem_line(const GemmArguments& arguments) {
  return {.problem = arguments.problem(),
          .alpha = arguments.alpha(),
          .beta = arguments.beta(),
          .numbers = numbers_among(arguments.epilogue_operands()),
          .a_numbers = numbers_among(arguments.a_companions().program_operands),
          .b_numbers = numbers_among(arguments.b_companions().program_operands)};
}

std::string to_string(const GemmArguments& arguments) { return to_string(problem_line(arguments)); }

}  // namespace gemmery
