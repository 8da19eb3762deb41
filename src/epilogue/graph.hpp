// SPDX-License-Identifier: Apache-2.0
// A program as a graph: nodes without repetition, operands before their readers.
#pragma once

#include <gemmery/epilogue.hpp>

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gemmery::epilogue {

using NodeId = std::uint16_t;
inline constexpr NodeId no_node = 0xffff;

enum class NodeKind : std::uint8_t { accumulator, input, constant, operation, cast, reduction };

struct CastRule {
  DType dtype = DType::float32;
  Rounding rounding = Rounding::nearest_even;
  Overflow overflow = Overflow::natural;
  friend bool operator==(const CastRule&, const CastRule&) = default;
};

// A reduction of the block that an element is in, as a value of the element.
struct BlockReduction {
  Reduction kind = Reduction::none;
  Block block = {};
  friend bool operator==(const BlockReduction&, const BlockReduction&) = default;
};

struct Node {
  NodeKind kind = NodeKind::accumulator;
  Op op{};  // operation
  std::array<NodeId, 3> operands{no_node, no_node,
                                 no_node};  // operation; cast, reduction: the first
  std::uint8_t input = 0;                   // index into Graph::inputs
  double constant = 0;
  CastRule cast = {};
  BlockReduction reduction = {};
  // Constants are compared by their bits: -0 differs from 0, and the one NaN equals itself.
  friend bool operator==(const Node& a, const Node& b) noexcept {
    return a.kind == b.kind && a.op == b.op && a.operands == b.operands && a.input == b.input &&
           std::bit_cast<std::uint64_t>(a.constant) == std::bit_cast<std::uint64_t>(b.constant) &&
           a.cast == b.cast && a.reduction == b.reduction;
  }
};

struct Output {
  std::string name;
  NodeId value = no_node;
  Reduction reduction = Reduction::none;
  friend bool operator==(const Output&, const Output&) = default;
};

// Canonical (rewrite.hpp). Truth values, the results of comparisons and of logic, are read only by
// logic and by the condition of `where`; one that is used as a number is written as where(x, 1, 0).
// Every node is reachable from an output.
struct Graph {
  std::vector<Node> nodes;
  std::vector<std::string> inputs;  // in the order of first use
  std::vector<Output> outputs;      // D first, the others by name
  std::string text;                 // the result of `print`
};

// Limits of a program; larger ones are refused by name.
inline constexpr std::size_t most_nodes = 8192;
inline constexpr std::size_t most_inputs = 255;
inline constexpr int most_depth = 1024;  // levels of nested operations
inline constexpr std::size_t most_block_reductions = 16;
inline constexpr std::int32_t most_block_extent = 1 << 20;

// A program's results as expressions, in the graph's order, with another value in place of the
// accumulator.
std::vector<Result> results_of(const Graph& graph, const Expression& accumulator = accum());
// The program without the results that are not in `names`; D always stays.
Program keep_results(const Program& program, std::span<const std::string> names);

// --- facts of ops.def ----------------------------------------------------------------------------

enum class OpKind : std::uint8_t { real, compare, logical, choose };

// Errors in units of the compute type: unit * (relative * |result| + absolute * max(1, |x|)).
struct OpErrors {
  double relative;
  double absolute;
};

struct OpRow {
  std::string_view name;
  int arity;
  OpKind kind;
  std::string_view formula;
  std::span<const double> turns;
  OpErrors errors;
  std::optional<OpErrors> brief;  // those of a brief formula, if the row has one
};
const OpRow& row_of(Op op) noexcept;
std::size_t count_ops() noexcept;
std::optional<Op> find_op(std::string_view name) noexcept;
bool is_truth(const Graph& graph, NodeId node) noexcept;

}  // namespace gemmery::epilogue
