// SPDX-License-Identifier: Apache-2.0
// A graph while it is built: each node is there once, in its simplest form, operands before what
// uses them.
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
  // The operation, or what the rules of rewrite.hpp make of it. Truth values among numbers are
  // written out as where(x, 1, 0).
  NodeId operation(Operation operation);
  // A truth value as a number, a number as itself.
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

  // Whether `a` stands before `b` as an operand of a commutative `op`: an order of structures, the
  // same however the program was written.
  bool is_before(Op op, NodeId a, NodeId b) const;

 private:
  NodeId unique(const Node& node);
  int order(NodeId a, NodeId b) const;

  std::vector<Node> nodes_;
  std::vector<std::string> inputs_;
  std::unordered_multimap<std::uint64_t, NodeId> ids_;
};

// Whether the first two operands of the operation may change places.
bool is_commutative(Op op) noexcept;

}  // namespace gemmery::epilogue
