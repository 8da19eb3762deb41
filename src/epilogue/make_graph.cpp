// SPDX-License-Identifier: Apache-2.0
// Converts expressions to the canonical graph, and back.
#include <gemmery/error.hpp>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "epilogue/expressed.hpp"
#include "epilogue/parse.hpp"
#include "epilogue/refusal.hpp"
#include "epilogue/rewrite.hpp"

namespace gemmery::epilogue {
namespace {

// Converts expressions to nodes; shared ones are visited once.
class Importer {
 public:
  explicit Importer(Nodes& nodes) : nodes_(nodes) {}

  // Recursion is bounded by `most_depth`: deeper expressions are refused.
  NodeId add(const Expressed& value) {
    if (const auto known = ids_.find(&value); known != ids_.end()) return known->second;
    const NodeId id = make(value);
    ids_.emplace(&value, id);
    return id;
  }

 private:
  NodeId make(const Expressed& value) {
    switch (value.kind) {
      case NodeKind::accumulator:
        return nodes_.accumulator();
      case NodeKind::input:
        return nodes_.input(value.name);
      case NodeKind::constant:
        return nodes_.constant(value.constant);
      case NodeKind::cast:
        return nodes_.cast(add(*value.operands[0]), value.cast);
      case NodeKind::reduction:
        return nodes_.reduction(add(*value.operands[0]), value.reduction);
      case NodeKind::operation:
        break;
    }
    Operation operation{.op = value.op};
    for (std::size_t at = 0; at < 3 && value.operands[at] != nullptr; ++at)
      operation.x[at] = add(*value.operands[at]);
    return nodes_.operation(operation);
  }

  Nodes& nodes_;
  std::unordered_map<const Expressed*, NodeId> ids_;
};

// Copies the nodes that outputs reach, in the order in which they reach them: ids and the order of
// inputs then depend on the structure alone.
class Renumbering {
 public:
  Renumbering(const Nodes& nodes, Graph& graph)
      : nodes_(nodes), graph_(graph), ids_(nodes.all().size(), no_node) {}

  NodeId add(NodeId old) {
    if (ids_[old] != no_node) return ids_[old];
    Node node = nodes_[old];
    for (NodeId& x : node.operands)
      if (x != no_node) x = add(x);
    if (node.kind == NodeKind::input) {
      graph_.inputs.push_back(nodes_.inputs()[node.input]);
      node.input = static_cast<std::uint8_t>(graph_.inputs.size() - 1);
    }
    graph_.nodes.push_back(node);
    return ids_[old] = static_cast<NodeId>(graph_.nodes.size() - 1);
  }

 private:
  const Nodes& nodes_;
  Graph& graph_;
  std::vector<NodeId> ids_;
};

void check_result(const Result& result) {
  const bool is_taken = is_reserved(result.name) || begins_no_assignment(result.name);
  if (is_taken || !is_operand_name(result.name))
    refuse("results whose names begin with a letter and hold at most 64 letters, digits and '_'",
           '"' + result.name.substr(0, 80) + '"',
           is_taken ? "this word has a meaning of its own in programs" : "");
  if (result.name == "D" && result.reduction != Reduction::none)
    refuse("D element by element", "a reduction as D",
           "store the reduction under another name, beside D");
  if (result.value.value() == nullptr)
    refuse("a value", result.name + ", an expression that was moved from", "copies are cheap");
}

bool stands_before(const Output& a, const Output& b) {
  if ((a.name == "D") != (b.name == "D")) return a.name == "D";
  return a.name < b.name;
}

void check_names(const Graph& graph) {
  if (graph.outputs.empty() || graph.outputs.front().name != "D")
    refuse("a result named D", "a program without it", "write D = ...");
  for (std::size_t at = 1; at < graph.outputs.size(); ++at)
    if (graph.outputs[at].name == graph.outputs[at - 1].name)
      refuse("each result assigned once", '"' + graph.outputs[at].name + "\" twice", "");
  for (const Output& output : graph.outputs)
    if (std::ranges::find(graph.inputs, output.name) != graph.inputs.end())
      refuse("names that are either read or assigned", '"' + output.name + "\" as both",
             "give the result another name");
}

void check_block_reductions(const Graph& graph) {
  const auto count = std::ranges::count(graph.nodes, NodeKind::reduction, &Node::kind);
  if (std::cmp_greater(count, most_block_reductions) ||
      static_cast<std::size_t>(count) + graph.inputs.size() > most_inputs)
    refuse("at most " + std::to_string(most_block_reductions) + " reductions of blocks",
           std::to_string(count), "split the program");
}

}  // namespace

Graph make_graph(std::span<const Result> results) {
  Nodes nodes;
  Importer importer(nodes);
  std::vector<Output> outputs;
  outputs.reserve(results.size());
  for (const Result& result : results) {
    check_result(result);
    const NodeId value = nodes.number(importer.add(*result.value.value()));
    outputs.push_back({result.name, value, result.reduction});
    rewrite_reduction(nodes, outputs.back().value, outputs.back().reduction);
  }
  std::ranges::sort(outputs, stands_before);
  Graph graph;
  Renumbering renumbering(nodes, graph);
  for (Output& output : outputs) output.value = renumbering.add(output.value);
  graph.outputs = std::move(outputs);
  check_names(graph);
  check_block_reductions(graph);
  graph.text = print(graph);
  return graph;
}

std::vector<Result> results_of(const Graph& graph, const Expression& accumulator) {
  std::vector<Expression> values;
  values.reserve(graph.nodes.size());
  const auto operand_of = [&](const Node& node, std::size_t at) {
    return node.operands[at] == no_node ? std::shared_ptr<const Expressed>()
                                        : values[node.operands[at]].value();
  };
  for (const Node& node : graph.nodes) {
    if (node.kind == NodeKind::accumulator) {
      values.push_back(accumulator);
      continue;
    }
    Expressed value{.kind = node.kind,
                    .op = node.op,
                    .constant = node.constant,
                    .cast = node.cast,
                    .reduction = node.reduction};
    if (node.kind == NodeKind::input) value.name = graph.inputs[node.input];
    for (std::size_t at = 0; at < 3; ++at) {
      value.operands[at] = operand_of(node, at);
      if (value.operands[at] != nullptr)
        value.depth = std::max(value.depth, value.operands[at]->depth + 1);
    }
    value.is_truth = is_truth(graph, static_cast<NodeId>(values.size()));
    values.emplace_back(std::make_shared<const Expressed>(std::move(value)));
  }
  std::vector<Result> results;
  for (const Output& output : graph.outputs)
    results.emplace_back(output.name, values[output.value], output.reduction);
  return results;
}

Program keep_results(const Program& program, std::span<const std::string> names) {
  std::vector<Result> results = results_of(program.graph());
  const auto is_dropped = [&](const Result& result) {
    return result.name != "D" && std::ranges::find(names, result.name) == names.end();
  };
  if (std::ranges::none_of(results, is_dropped)) return program;
  std::erase_if(results, is_dropped);
  return Program(results);
}

}  // namespace gemmery::epilogue
