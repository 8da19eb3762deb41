// SPDX-License-Identifier: Apache-2.0
#include "epilogue/zeros.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "epilogue/addend.hpp"
#include "epilogue/evaluate.hpp"
#include "epilogue/formulas.hpp"

namespace gemmery::epilogue {
namespace {

using Known = std::optional<double>;

// True if the device computes exactly the result that the formula gives in double, for `x` and
// other operands that are numbers of float32: if nothing is rounded, or a single rounding gives 0,
// or a function maps 0 to 0 as its formula does. Quotients and powers of numbers at the ends of
// their range may differ.
bool is_exact(Op op, double x, double result) {
  const OpErrors& errors = row_of(op).errors;
  if (errors.relative == 0 && errors.absolute == 0) return true;
  if (result != 0 || op == Op::divide || op == Op::pow) return false;
  const bool is_rounded_once = errors.relative <= 1 && errors.absolute == 0;
  return is_rounded_once || x == 0;
}

Known evaluate_operation(const Node& node, const std::vector<Known>& values) {
  std::array<double, 3> operands{};
  for (std::size_t index = 0; index < operands.size(); ++index) {
    if (node.operands[index] == no_node) continue;
    const Known& operand = values[node.operands[index]];
    if (!operand) return std::nullopt;
    operands[index] = *operand;
  }
  const double result = formula_of<double>(node.op)(operands[0], operands[1], operands[2]);
  return std::isfinite(result) && is_exact(node.op, operands[0], result) ? Known(result)
                                                                         : std::nullopt;
}

// Sums start with 0, and so does the largest magnitude.
bool is_nothing(Reduction reduction, const Known& value) {
  return (reduction == Reduction::sum || reduction == Reduction::amax) && value && *value == 0;
}

}  // namespace

std::vector<Known> evaluate_zeros(const Graph& graph, const std::vector<bool>& are_zero) {
  std::vector<Known> values;
  values.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    switch (node.kind) {
      case NodeKind::accumulator:
        values.emplace_back(0.0);
        break;
      case NodeKind::input:
        values.push_back(are_zero[node.input] ? Known(0.0) : std::nullopt);
        break;
      case NodeKind::constant:
        values.push_back(std::isfinite(node.constant)
                             ? Known(in_compute_type(node.constant, DType::float32))
                             : std::nullopt);
        break;
      case NodeKind::cast:
      case NodeKind::reduction:
        values.push_back(std::nullopt);
        break;
      case NodeKind::operation:
        values.push_back(evaluate_operation(node, values));
        break;
    }
  }
  return values;
}

bool reduces_zeros_to_nothing(EpilogueId epilogue) {
  const Graph& graph = rules_of(epilogue).program.graph();
  const auto is_plain = [](const Output& output) { return output.reduction == Reduction::none; };
  if (std::ranges::all_of(graph.outputs, is_plain)) return true;
  std::vector<bool> are_zero(graph.inputs.size());
  if (find_addend(epilogue) >= 0) are_zero[find_added_input(graph).value()] = true;
  const auto values = evaluate_zeros(graph, are_zero);
  return std::ranges::all_of(graph.outputs, [&](const Output& output) {
    return is_plain(output) || is_nothing(output.reduction, values[output.value]);
  });
}

}  // namespace gemmery::epilogue
