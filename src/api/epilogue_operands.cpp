// SPDX-License-Identifier: Apache-2.0
// Converts rules of operands back to operands.
#include "api/epilogue_operands.hpp"

#include <utility>

#include "operation/block_results.hpp"
#include "operation/epilogue_operands.hpp"
#include "operation/groups.hpp"

namespace gemmery::api {
namespace {

Extents3 extents_of(const EpilogueOperandRule& rule, const MatrixType& type,
                    const GemmProblem& problem) {
  const auto kept = [&](bool varies, std::int64_t extent) {
    return rule.is_output && !varies ? 1 : extent;
  };
  if (rule.block != epilogue::one_element) {
    const operation::MatrixExtents own =
        operation::block_extents(rule.block, rule.layout, operation::product_extents(problem).out);
    return {own.batch, own.rows, own.columns};
  }
  const operation::MatrixExtents whole = operation::addend_extents(problem, type);
  return {kept(rule.varies_l, whole.batch), kept(rule.varies_m, whole.rows),
          kept(rule.varies_n, whole.columns)};
}

}  // namespace

std::vector<EpilogueTensor> epilogue_tensors(const GemmProblem& problem) {
  std::vector<EpilogueTensor> tensors;
  if (problem.epilogue == default_epilogue) return tensors;
  const std::vector<EpilogueOperandRule>& rules = rules_of(problem.epilogue).operands;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].is_number) continue;
    tensors.push_back({.index = i,
                       .type = problem.epilogue_operands[i],
                       .extents = extents_of(rules[i], problem.epilogue_operands[i], problem),
                       .is_result = rules[i].is_output});
  }
  return tensors;
}

std::optional<EpilogueArguments> bind_epilogue(const ProblemLine& line,
                                               const std::vector<Tensor>& tensors) {
  if (line.problem.epilogue == default_epilogue) return std::nullopt;
  const EpilogueRules& rules = rules_of(line.problem.epilogue);
  std::vector<EpilogueOperand> operands;
  std::size_t tensor = 0;
  std::size_t number = 0;
  for (const EpilogueOperandRule& rule : rules.operands) {
    if (rule.is_number) {
      operands.push_back({rule.name, number < line.numbers.size() ? line.numbers[number] : 1.0});
      ++number;
    } else {
      operands.push_back({rule.name, tensors[tensor++], rule.layout});
    }
  }
  return EpilogueArguments(rules.program, std::move(operands));
}

}  // namespace gemmery::api
