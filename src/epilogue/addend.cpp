// SPDX-License-Identifier: Apache-2.0
#include "epilogue/addend.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gemmery::epilogue {
namespace {

// The number of operations and outputs that read a node.
std::ptrdiff_t count_uses(const Graph& graph, NodeId id) {
  std::ptrdiff_t uses = std::ranges::count(graph.outputs, id, &Output::value);
  for (const Node& node : graph.nodes) uses += std::ranges::count(node.operands, id);
  return uses;
}

// The only operation that reads a node; nothing if there are several readers.
const Node* sole_reader(const Graph& graph, NodeId id) {
  if (count_uses(graph, id) != 1) return nullptr;
  const auto reader = std::ranges::find_if(graph.nodes, [&](const Node& node) {
    return std::ranges::find(node.operands, id) != node.operands.end();
  });
  return reader == graph.nodes.end() ? nullptr : &*reader;
}

// The number of a graph's input among the tensors; operands that are not outputs follow the graph's
// inputs.
int tensor_number(const EpilogueRules& rules, std::size_t input) {
  std::vector<bool> are_numbers;
  for (const EpilogueOperandRule& rule : rules.operands)
    if (!rule.is_output) are_numbers.push_back(rule.is_number);
  if (are_numbers[input]) return -1;
  const auto before = are_numbers.begin() + static_cast<std::ptrdiff_t>(input);
  return static_cast<int>(std::count(are_numbers.begin(), before, false));
}

}  // namespace

std::optional<std::size_t> find_added_input(const Graph& graph) {
  const auto accumulator = std::ranges::find(graph.nodes, NodeKind::accumulator, &Node::kind);
  if (accumulator == graph.nodes.end()) return std::nullopt;
  const auto sums = static_cast<NodeId>(accumulator - graph.nodes.begin());
  const Node* const reader = sole_reader(graph, sums);
  if (reader == nullptr || reader->kind != NodeKind::operation || reader->op != Op::add)
    return std::nullopt;
  const NodeId other = reader->operands[reader->operands[0] == sums ? 1 : 0];
  const Node& added = graph.nodes[other];
  if (added.kind != NodeKind::input || count_uses(graph, other) != 1) return std::nullopt;
  return added.input;
}

int find_addend(EpilogueId epilogue) {
  const EpilogueRules& rules = rules_of(epilogue);
  const auto input = find_added_input(rules.program.graph());
  return input ? tensor_number(rules, *input) : -1;
}

}  // namespace gemmery::epilogue
