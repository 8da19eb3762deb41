// SPDX-License-Identifier: Apache-2.0
// The rules: one function each, tried in the order of the table.
#include "epilogue/rewrite.hpp"

#include <array>
#include <cmath>

#include "epilogue/formulas.hpp"

namespace gemmery::epilogue {
namespace {

using Rewritten = std::optional<NodeId>;

double constant_of(const Nodes& nodes, NodeId id) { return nodes[id].constant; }

// 1 + 2 is 3: computed in double, and rounded where it is used.
Rewritten constants_are_computed(Nodes& nodes, const Operation& it) {
  const OpRow& row = row_of(it.op);
  if (row.kind != OpKind::real) return {};
  std::array<double, 3> values{};
  for (std::size_t at = 0; at < static_cast<std::size_t>(row.arity); ++at) {
    if (!nodes.is_constant(it.x[at])) return {};
    values[at] = constant_of(nodes, it.x[at]);
  }
  return nodes.constant(formula_of<double>(it.op)(values[0], values[1], values[2]));
}

// x * 1 is x
Rewritten factor_one(Nodes& nodes, const Operation& it) {
  if (it.op != Op::multiply) return {};
  if (nodes.is_constant(it.x[0], 1)) return it.x[1];
  if (nodes.is_constant(it.x[1], 1)) return it.x[0];
  return {};
}

// x * -1 is -x
Rewritten factor_minus_one(Nodes& nodes, const Operation& it) {
  if (it.op != Op::multiply) return {};
  if (nodes.is_constant(it.x[0], -1)) return nodes.operation({Op::negate, {it.x[1]}});
  if (nodes.is_constant(it.x[1], -1)) return nodes.operation({Op::negate, {it.x[0]}});
  return {};
}

// x / 2^k is x * 2^-k: the same real number, rounded once in both cases. Both powers are normal
// numbers of float, the narrowest compute type.
Rewritten divisor_power_of_two(Nodes& nodes, const Operation& it) {
  if (it.op != Op::divide || !nodes.is_constant(it.x[1])) return {};
  int exponent = 0;
  const double divisor = constant_of(nodes, it.x[1]);
  if (!std::isfinite(divisor) || std::abs(std::frexp(divisor, &exponent)) != 0.5) return {};
  if (exponent - 1 < -126 || exponent - 1 > 126) return {};
  return nodes.operation({Op::multiply, {it.x[0], nodes.constant(1 / divisor)}});
}

// x + -0 is x (x + 0 is not: -0 + 0 is 0)
Rewritten summand_negative_zero(Nodes& nodes, const Operation& it) {
  if (it.op != Op::add) return {};
  if (nodes.is_constant(it.x[0], -0.0)) return it.x[1];
  if (nodes.is_constant(it.x[1], -0.0)) return it.x[0];
  return {};
}

// x - 1 is x + -1; hence x - 0 is x
Rewritten constant_taken_away(Nodes& nodes, const Operation& it) {
  if (it.op != Op::subtract || !nodes.is_constant(it.x[1])) return {};
  return nodes.operation({Op::add, {it.x[0], nodes.constant(-constant_of(nodes, it.x[1]))}});
}

// x + -y is x - y
Rewritten negated_summand(Nodes& nodes, const Operation& it) {
  if (it.op != Op::add) return {};
  for (const std::size_t at : {0U, 1U})
    if (nodes.is_operation(it.x[at], Op::negate))
      return nodes.operation({Op::subtract, {it.x[1 - at], nodes[it.x[at]].operands[0]}});
  return {};
}

// x - -y is x + y
Rewritten negated_taken_away(Nodes& nodes, const Operation& it) {
  if (it.op != Op::subtract || !nodes.is_operation(it.x[1], Op::negate)) return {};
  return nodes.operation({Op::add, {it.x[0], nodes[it.x[1]].operands[0]}});
}

// --x is x, not not x is x
Rewritten twice_negated(Nodes& nodes, const Operation& it) {
  if (it.op != Op::negate && it.op != Op::logical_not) return {};
  if (!nodes.is_operation(it.x[0], it.op)) return {};
  return nodes[it.x[0]].operands[0];
}

// not (x == y) is x != y, and vice versa; for NaN, too
Rewritten negated_equality(Nodes& nodes, const Operation& it) {
  if (it.op != Op::logical_not) return {};
  const auto [x, y, none] = nodes[it.x[0]].operands;
  if (nodes.is_operation(it.x[0], Op::equal)) return nodes.operation({Op::not_equal, {x, y}});
  if (nodes.is_operation(it.x[0], Op::not_equal)) return nodes.operation({Op::equal, {x, y}});
  return {};
}

// -(2 * x) and 2 * -x are -2 * x
Rewritten sign_into_constant(Nodes& nodes, const Operation& it) {
  if (it.op == Op::negate && nodes.is_operation(it.x[0], Op::multiply)) {
    const auto [factor, x, none] = nodes[it.x[0]].operands;
    if (!nodes.is_constant(factor)) return {};
    return nodes.operation({Op::multiply, {nodes.constant(-constant_of(nodes, factor)), x}});
  }
  if (it.op != Op::multiply) return {};
  for (const std::size_t at : {0U, 1U}) {
    const NodeId factor = it.x[at];
    const NodeId x = it.x[1 - at];
    if (!nodes.is_constant(factor) || !nodes.is_operation(x, Op::negate)) continue;
    return nodes.operation(
        {Op::multiply, {nodes.constant(-constant_of(nodes, factor)), nodes[x].operands[0]}});
  }
  return {};
}

// |-x| and ||x|| are |x|
Rewritten absolute_of_sign(Nodes& nodes, const Operation& it) {
  if (it.op != Op::abs) return {};
  if (nodes.is_operation(it.x[0], Op::abs)) return it.x[0];
  if (nodes.is_operation(it.x[0], Op::negate))
    return nodes.operation({Op::abs, {nodes[it.x[0]].operands[0]}});
  return {};
}

// x ** 1 is x
Rewritten first_power(Nodes& nodes, const Operation& it) {
  if (it.op != Op::pow || !nodes.is_constant(it.x[1], 1)) return {};
  return it.x[0];
}

// x ** 2 is x * x, which is rounded once
Rewritten second_power(Nodes& nodes, const Operation& it) {
  if (it.op != Op::pow || !nodes.is_constant(it.x[1], 2)) return {};
  return nodes.operation({Op::multiply, {it.x[0], it.x[0]}});
}

// fma(x, 1, z) is x + z
Rewritten fused_factor_one(Nodes& nodes, const Operation& it) {
  if (it.op != Op::fma) return {};
  if (nodes.is_constant(it.x[0], 1)) return nodes.operation({Op::add, {it.x[1], it.x[2]}});
  if (nodes.is_constant(it.x[1], 1)) return nodes.operation({Op::add, {it.x[0], it.x[2]}});
  return {};
}

// min(x, x), max(x, x), x and x, x or x are x
Rewritten same_operands(Nodes&, const Operation& it) {
  const bool keeps =
      it.op == Op::min || it.op == Op::max || it.op == Op::logical_and || it.op == Op::logical_or;
  if (!keeps || it.x[0] != it.x[1]) return {};
  return it.x[0];
}

// x > y is y < x
Rewritten greater_is_less(Nodes& nodes, const Operation& it) {
  if (it.op == Op::greater) return nodes.operation({Op::less, {it.x[1], it.x[0]}});
  if (it.op == Op::greater_equal) return nodes.operation({Op::less_equal, {it.x[1], it.x[0]}});
  return {};
}

// where(x, y, y) is y
Rewritten choice_of_equals(Nodes&, const Operation& it) {
  if (it.op != Op::where || it.x[1] != it.x[2]) return {};
  return it.x[1];
}

// where(not x, y, z) is where(x, z, y)
Rewritten choice_by_negation(Nodes& nodes, const Operation& it) {
  if (it.op != Op::where || !nodes.is_operation(it.x[0], Op::logical_not)) return {};
  return nodes.operation({Op::where, {nodes[it.x[0]].operands[0], it.x[2], it.x[1]}});
}

// where(1 < 2, y, z) is y
Rewritten choice_by_constants(Nodes& nodes, const Operation& it) {
  if (it.op != Op::where) return {};
  const Node& condition = nodes[it.x[0]];
  if (row_of(condition.op).kind != OpKind::compare) return {};
  if (!nodes.is_constant(condition.operands[0]) || !nodes.is_constant(condition.operands[1]))
    return {};
  const double holds = formula_of<double>(condition.op)(
      constant_of(nodes, condition.operands[0]), constant_of(nodes, condition.operands[1]), 0);
  return holds != 0 ? it.x[1] : it.x[2];
}

using Rule = Rewritten (*)(Nodes&, const Operation&);
constexpr Rule rules[] = {
    constants_are_computed,
    factor_one,
    factor_minus_one,
    divisor_power_of_two,
    summand_negative_zero,
    constant_taken_away,
    negated_summand,
    negated_taken_away,
    twice_negated,
    negated_equality,
    sign_into_constant,
    absolute_of_sign,
    first_power,
    second_power,
    fused_factor_one,
    same_operands,
    greater_is_less,
    choice_of_equals,
    choice_by_negation,
    choice_by_constants,
};

}  // namespace

Rewritten rewrite(Nodes& nodes, const Operation& operation) {
  for (const Rule rule : rules)
    if (const Rewritten simpler = rule(nodes, operation)) return simpler;
  return {};
}

void rewrite_reduction(const Nodes& nodes, NodeId& value, Reduction& reduction) {
  if (reduction == Reduction::max && nodes.is_operation(value, Op::abs))
    reduction = Reduction::amax;
  if (reduction != Reduction::amax) return;
  while (nodes.is_operation(value, Op::abs) || nodes.is_operation(value, Op::negate))
    value = nodes[value].operands[0];
}

}  // namespace gemmery::epilogue
