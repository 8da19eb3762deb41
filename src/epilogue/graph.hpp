// SPDX-License-Identifier: Apache-2.0
// A program as values: nodes in an order in which operands come first, without repetition.
#pragma once

#include <gemmery/epilogue.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gemmery::epilogue {

using NodeId = std::uint16_t;
inline constexpr NodeId no_node = 0xffff;

enum class NodeKind : std::uint8_t { accumulator, input, constant, operation, cast };

struct CastRule {
  DType dtype = DType::float32;
  Rounding rounding = Rounding::nearest_even;
  Overflow overflow = Overflow::natural;
  friend bool operator==(const CastRule&, const CastRule&) = default;
};

struct Node {
  NodeKind kind = NodeKind::accumulator;
  Op op{};                                                    // operation
  std::array<NodeId, 3> operands{no_node, no_node, no_node};  // operation, cast (the first)
  std::uint8_t input = 0;                                     // index into Graph::inputs
  double constant = 0;
  CastRule cast = {};
  friend bool operator==(const Node&, const Node&) = default;
};

struct Output {
  std::string name;
  NodeId value = no_node;
  Reduction reduction = Reduction::none;
  friend bool operator==(const Output&, const Output&) = default;
};

// Canonical: `rewrite` has been over it.
struct Graph {
  std::vector<Node> nodes;
  std::vector<std::string> inputs;  // in the order of first use
  std::vector<Output> outputs;      // D first
  std::string text;                 // as `print` gives it
};

// --- facts of ops.def ----------------------------------------------------------------------------

enum class OpKind : std::uint8_t { real, compare, logical, choose };

struct OpRow {
  std::string_view name;
  int arity;
  OpKind kind;
  std::string_view formula;
  std::span<const double> turns;
  double relative;
  double absolute;
};
const OpRow& row_of(Op op) noexcept;
std::optional<Op> find_op(std::string_view name) noexcept;
bool is_truth(const Graph& graph, NodeId node) noexcept;

}  // namespace gemmery::epilogue
