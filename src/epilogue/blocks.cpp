// SPDX-License-Identifier: Apache-2.0
#include "epilogue/blocks.hpp"

#include <algorithm>
#include <numeric>

namespace gemmery::epilogue {
namespace {

std::string extent_text(std::int32_t extent) {
  return extent == 0 ? "all" : std::to_string(extent);
}

// The largest blocks that lie within those of both: gcd(0, x) is x.
Block common(Block a, Block b) {
  return {std::gcd(a.rows, b.rows), std::gcd(a.columns, b.columns)};
}

// Values of nodes that depend on a reduction of blocks, and their blocks.
struct Blocks {
  std::vector<Block> of;
  std::vector<bool> are_reduced;
};

Blocks find_blocks(const Graph& graph, std::span<const Block> of_inputs) {
  Blocks blocks;
  for (const Node& node : graph.nodes) {
    Block block{};
    bool is_reduced = node.kind == NodeKind::reduction;
    if (node.kind == NodeKind::accumulator) block = one_element;
    if (node.kind == NodeKind::input) block = of_inputs[node.input];
    for (const NodeId x : node.operands) {
      if (x == no_node) continue;
      block = common(block, blocks.of[x]);
      is_reduced = is_reduced || blocks.are_reduced[x];
    }
    blocks.of.push_back(node.kind == NodeKind::reduction ? node.reduction.block : block);
    blocks.are_reduced.push_back(is_reduced);
  }
  return blocks;
}

// The number of reductions that must be done before a node is computed.
std::vector<std::size_t> levels_of(const Graph& graph) {
  std::vector<std::size_t> levels;
  for (const Node& node : graph.nodes) {
    std::size_t level = 0;
    for (const NodeId x : node.operands)
      if (x != no_node) level = std::max(level, levels[x]);
    levels.push_back(level + (node.kind == NodeKind::reduction ? 1 : 0));
  }
  return levels;
}

// Copies the nodes that outputs reach; reductions become inputs.
class StageNodes {
 public:
  StageNodes(const Graph& from, Graph& to)
      : from_(from), to_(to), ids_(from.nodes.size(), no_node), numbers_(from.nodes.size()) {
    std::size_t next = from.inputs.size();
    for (std::size_t id = 0; id < from.nodes.size(); ++id)
      if (from.nodes[id].kind == NodeKind::reduction) numbers_[id] = next++;
  }

  NodeId add(NodeId old) {
    if (ids_[old] != no_node) return ids_[old];
    Node node = from_.nodes[old];
    if (node.kind == NodeKind::reduction)
      node = {.kind = NodeKind::input, .input = static_cast<std::uint8_t>(numbers_[old])};
    for (NodeId& x : node.operands)
      if (x != no_node) x = add(x);
    to_.nodes.push_back(node);
    return ids_[old] = static_cast<NodeId>(to_.nodes.size() - 1);
  }

 private:
  const Graph& from_;
  Graph& to_;
  std::vector<NodeId> ids_;
  std::vector<std::size_t> numbers_;  // of reductions: their inputs
};

Graph stage_graph(const Graph& graph, std::vector<Output> outputs, std::size_t reductions) {
  Graph stage{.nodes = {}, .inputs = graph.inputs, .outputs = {}, .text = {}};
  for (std::size_t at = 0; at < reductions; ++at)
    stage.inputs.push_back("block " + std::to_string(at));
  StageNodes nodes(graph, stage);
  for (Output& output : outputs) output.value = nodes.add(output.value);
  stage.outputs = std::move(outputs);
  return stage;
}

}  // namespace

bool has_block_reductions(const Graph& graph) noexcept {
  return std::ranges::find(graph.nodes, NodeKind::reduction, &Node::kind) != graph.nodes.end();
}

std::string block_text(Block block) {
  return extent_text(block.rows) + "x" + extent_text(block.columns);
}

Block block_of_output(const Graph& graph, const Output& output, std::span<const Block> of_inputs) {
  if (output.name == "D" || output.reduction != Reduction::none) return one_element;
  const Blocks blocks = find_blocks(graph, of_inputs);
  return blocks.are_reduced[output.value] ? blocks.of[output.value] : one_element;
}

Stages make_stages(const Graph& graph) {
  const std::vector<std::size_t> levels = levels_of(graph);
  Stages made;
  std::vector<NodeId> nodes;
  for (std::size_t id = 0; id < graph.nodes.size(); ++id)
    if (graph.nodes[id].kind == NodeKind::reduction) {
      made.reductions.push_back(graph.nodes[id].reduction);
      nodes.push_back(static_cast<NodeId>(id));
    }
  const std::size_t last = levels.empty() ? 0 : *std::ranges::max_element(levels);
  for (std::size_t level = 1; level <= last; ++level) {
    Stage stage;
    std::vector<Output> outputs;
    for (std::size_t at = 0; at < nodes.size(); ++at)
      if (levels[nodes[at]] == level) {
        stage.reductions.push_back(at);
        outputs.push_back({.name = {}, .value = graph.nodes[nodes[at]].operands[0]});
      }
    stage.graph = stage_graph(graph, std::move(outputs), nodes.size());
    made.stages.push_back(std::move(stage));
  }
  made.stages.push_back({stage_graph(graph, graph.outputs, nodes.size()), {}});
  return made;
}

}  // namespace gemmery::epilogue
