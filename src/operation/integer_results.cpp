// SPDX-License-Identifier: Apache-2.0
#include "operation/integer_results.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include <gemmery/dtype.hpp>
#include <gemmery/epilogue.hpp>

#include "epilogue/graph.hpp"
#include "epilogue/whole.hpp"
#include "operation/refusal.hpp"

namespace gemmery::operation {
namespace {

bool is_whole_operand(const EpilogueOperandRule& rule) {
  return !rule.is_number && is_integer(rule.dtype);
}

[[noreturn]] void refuse_rounding(std::string_view operand, DType dtype, DType accumulator) {
  const std::string type(name(dtype));
  refuse(operand, "a floating-point type, or an epilogue that says how " + type + " is reached",
         type + " of values in " + std::string(name(accumulator)),
         "epilogue=\"D = round(accum)\", or cast(accum, " + type + ") to saturate");
}

DType dtype_of(const epilogue::Output& output, const EpilogueRules& rules, DType out) {
  if (output.name == "D") return out;
  return std::ranges::find_if(rules.operands,
                              [&](const EpilogueOperandRule& rule) {
                                return rule.is_output && rule.name == output.name;
                              })
      ->dtype;
}

void check_program(const GemmProblem& problem) {
  const EpilogueRules& rules = rules_of(problem.epilogue);
  const epilogue::Graph& graph = rules.program.graph();
  epilogue::WholeInputs read{.accumulator = false, .inputs = {}};
  for (std::size_t input = 0; input < graph.inputs.size(); ++input)
    read.inputs.push_back(is_whole_operand(rules.operands[input]));
  const std::vector<bool> whole = epilogue::find_whole_values(graph, read);
  for (const epilogue::Output& output : graph.outputs) {
    const DType dtype = dtype_of(output, rules, problem.out.dtype);
    if (is_integer(dtype) && !whole[output.value])
      refuse_rounding(output.name == "D" ? "out" : output.name, dtype, problem.accumulator);
  }
}

}  // namespace

void check_integer_results(const GemmProblem& problem) {
  if (is_integer(problem.accumulator)) return;
  if (problem.epilogue != default_epilogue) return check_program(problem);
  if (is_integer(problem.out.dtype)) refuse_rounding("out", problem.out.dtype, problem.accumulator);
}

}  // namespace gemmery::operation
