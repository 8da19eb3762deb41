// SPDX-License-Identifier: Apache-2.0
// Instructions of operations and casts: counted in the code that ptxas 13.0 makes for sm_90a from
// math.cuh and element.cuh, for a straight line of four elements, without loading constants.
#include "epilogue/cost.hpp"

#include <algorithm>
#include <iterator>

namespace gemmery::epilogue {
namespace {

struct OpCost {
  Op op;
  double instructions;
  int slow_results = 0;
};

// Operations that are not one instruction. Negation and absolute value are free: the reader's
// instruction applies them.
constexpr OpCost op_costs[] = {
    {Op::negate, 0},       {Op::abs, 0},        {Op::divide, 20, 1},   {Op::clamp, 2},
    {Op::exp, 10, 1},      {Op::exp2, 4, 1},    {Op::log, 33, 1},      {Op::sqrt, 17, 1},
    {Op::rsqrt, 4, 1},     {Op::pow, 81, 2},    {Op::erf, 23, 1},      {Op::tanh, 19, 2},
    {Op::sigmoid, 4, 2},   {Op::leaky_relu, 2}, {Op::silu, 5, 2},      {Op::gelu, 10, 1},
    {Op::gelu_tanh, 7, 2}, {Op::hardswish, 5},  {Op::softplus, 20, 1}, {Op::floor, 1, 1},
    {Op::round, 1, 1},     {Op::mx_floor, 12},  {Op::mx_rceil, 14}};

double count_cast(const CastRule& rule) noexcept {
  switch (rule.dtype) {
    case DType::float32:
    case DType::float64:
      return 0;
    case DType::bfloat16:
    case DType::float16:
      return rule.overflow == Overflow::saturate ? 4 : 2;
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
      return 16;
    default:
      return 4;  // an integer
  }
}

double count_node(const Node& node) noexcept {
  if (node.kind == NodeKind::cast) return count_cast(node.cast);
  // Of a block: an operation for each element, and steps between threads, shared by several.
  if (node.kind == NodeKind::reduction) return 3;
  return node.kind == NodeKind::operation ? count_instructions(node.op) : 0;
}

}  // namespace

double count_instructions(Op op) noexcept {
  const auto* const cost = std::ranges::find(op_costs, op, &OpCost::op);
  return cost == std::end(op_costs) ? 1 : cost->instructions;
}

int count_slow_results(Op op) noexcept {
  const auto* const cost = std::ranges::find(op_costs, op, &OpCost::op);
  return cost == std::end(op_costs) ? 0 : cost->slow_results;
}

int count_slow_results(const Graph& graph) noexcept {
  int count = 0;
  for (const Node& node : graph.nodes)
    if (node.kind == NodeKind::operation) count += count_slow_results(node.op);
  return count;
}

double count_instructions(const Graph& graph) noexcept {
  double count = 0;
  for (const Node& node : graph.nodes) count += count_node(node);
  return count;
}

}  // namespace gemmery::epilogue
