// SPDX-License-Identifier: Apache-2.0
#include "epilogue/whole.hpp"

#include <algorithm>
#include <cmath>

#include <gemmery/dtype.hpp>

namespace gemmery::epilogue {
namespace {

// True if integral operands give an integral result. Sums and products too long for the type are
// rounded to integers, too.
bool keeps_whole(Op op) {
  switch (op) {
    case Op::add:
    case Op::subtract:
    case Op::multiply:
    case Op::negate:
    case Op::abs:
    case Op::min:
    case Op::max:
    case Op::clamp:
    case Op::fma:
    case Op::relu:
    case Op::where:
      return true;
    default:
      return false;
  }
}

bool makes_whole(Op op) {
  return op == Op::floor || op == Op::round || row_of(op).kind == OpKind::compare ||
         row_of(op).kind == OpKind::logical;
}

bool is_whole(const Node& node, const WholeInputs& read, const std::vector<bool>& before) {
  const auto is_whole_operand = [&](NodeId operand) {
    return operand == no_node || before[operand];
  };
  switch (node.kind) {
    case NodeKind::accumulator:
      return read.accumulator;
    case NodeKind::input:
      return read.inputs[node.input];
    case NodeKind::constant:
      // NaN is what floor gives for NaN: a folded program has the types of the one that was written.
      return std::isnan(node.constant) || std::trunc(node.constant) == node.constant;
    case NodeKind::cast:
      return is_integer(node.cast.dtype) || before[node.operands[0]];
    case NodeKind::reduction:
      return before[node.operands[0]];
    case NodeKind::operation:
      return makes_whole(node.op) ||
             (keeps_whole(node.op) && std::ranges::all_of(node.operands, is_whole_operand));
  }
  return false;
}

}  // namespace

std::vector<bool> find_whole_values(const Graph& graph, const WholeInputs& read) {
  std::vector<bool> whole;
  whole.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) whole.push_back(is_whole(node, read, whole));
  return whole;
}

}  // namespace gemmery::epilogue
