// SPDX-License-Identifier: Apache-2.0
// A graph under construction: each node exists once, in its simplest form, operands before their
// readers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "epilogue/graph.hpp"

namespace gemmery::epilogue {

struct Operation {
  Op op{};
  std::array<NodeId, 3> x{no_node, no_node, no_node};
};

class Nodes {
 public:
  NodeId accumulator() { return unique({.kind = NodeKind::accumulator}); }
  NodeId constant(double value);
  NodeId input(std::string_view name);
  NodeId cast(NodeId x, const CastRule& rule);
  // Of numbers, in its simplest form.
  NodeId reduction(NodeId x, BlockReduction reduction);
  // The operation, or its simplification by the rules of rewrite.hpp. Truth values used as numbers
  // are written as where(x, 1, 0).
  NodeId operation(Operation operation);
  // A truth value as a number; a number as itself.
  NodeId number(NodeId x);

  const Node& operator[](NodeId id) const noexcept { return nodes_[id]; }
  const std::vector<Node>& all() const noexcept { return nodes_; }
  const std::vector<std::string>& inputs() const noexcept { return inputs_; }
  bool is_truth(NodeId id) const noexcept;
  bool is_constant(NodeId id) const noexcept { return nodes_[id].kind == NodeKind::constant; }
  bool is_constant(NodeId id, double value) const noexcept;  // by its bits
  bool is_operation(NodeId id, Op op) const noexcept {
    return nodes_[id].kind == NodeKind::operation && nodes_[id].op == op;
  }

  // True if `a` comes before `b` as an operand of a commutative `op`: an order of structures, the
  // same however the program was written.
  bool is_before(Op op, NodeId a, NodeId b) const;

 private:
  NodeId unique(const Node& node);
  int order(NodeId a, NodeId b) const;

  std::vector<Node> nodes_;
  std::vector<std::string> inputs_;
  std::unordered_multimap<std::uint64_t, NodeId> ids_;
};

// True if the first two operands of the operation may be exchanged.
bool is_commutative(Op op) noexcept;

}  // namespace gemmery::epilogue
