// SPDX-License-Identifier: Apache-2.0
// Sharing of equal nodes, and the order of commutative operands.
#include "epilogue/nodes.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "epilogue/rewrite.hpp"

namespace gemmery::epilogue {
namespace {

[[noreturn]] void refuse_size(std::size_t most, std::string_view what) {
  throw Error({.kind = ErrorKind::unsupported,
               .operand = "epilogue",
               .expected = "at most " + std::to_string(most) + ' ' + std::string(what),
               .got = "more",
               .hint = "split the program, or compute a part of it beforehand"});
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
  return hash ^ (hash >> 29);
}

std::uint64_t hash_of(const Node& node) {
  std::uint64_t hash =
      mix(static_cast<std::uint64_t>(node.kind), static_cast<std::uint64_t>(node.op));
  for (const NodeId x : node.operands) hash = mix(hash, x);
  hash = mix(hash, node.input);
  hash = mix(hash, static_cast<std::uint64_t>(node.reduction.kind));
  hash = mix(hash, static_cast<std::uint64_t>(node.reduction.block.rows) << 32 |
                       static_cast<std::uint32_t>(node.reduction.block.columns));
  hash = mix(hash, std::bit_cast<std::uint64_t>(node.constant));
  return mix(hash, static_cast<std::uint64_t>(node.cast.dtype) << 16 |
                       static_cast<std::uint64_t>(node.cast.rounding) << 8 |
                       static_cast<std::uint64_t>(node.cast.overflow));
}

// Negative, 0 or positive, as std::string_view::compare returns.
int compare_names(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  const std::size_t common = std::min(a.size(), b.size());
  for (std::size_t at = 0; at < common; ++at)
    if (lower(a[at]) != lower(b[at])) return lower(a[at]) < lower(b[at]) ? -1 : 1;
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a.compare(b);
}

template <class T>
int compare(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

int compare_casts(const CastRule& a, const CastRule& b) {
  if (a.dtype != b.dtype) return name(a.dtype).compare(name(b.dtype));
  if (a.rounding != b.rounding) return compare(a.rounding, b.rounding);
  return compare(a.overflow, b.overflow);
}

int compare_reductions(const BlockReduction& a, const BlockReduction& b) {
  if (a.kind != b.kind) return compare(a.kind, b.kind);
  if (a.block.rows != b.block.rows) return compare(a.block.rows, b.block.rows);
  return compare(a.block.columns, b.block.columns);
}

// Orders sums as accum + bias + 1, and products as 2 * alpha * accum.
int place_in_sum(const Node& node) {
  switch (node.kind) {
    case NodeKind::accumulator:
      return 0;
    case NodeKind::operation:
    case NodeKind::cast:
    case NodeKind::reduction:
      return 1;
    case NodeKind::input:
      return 2;
    case NodeKind::constant:
      return 3;
  }
  return 4;
}

int place_in_product(const Node& node) {
  switch (node.kind) {
    case NodeKind::constant:
      return 0;
    case NodeKind::input:
      return 1;
    case NodeKind::accumulator:
      return 2;
    case NodeKind::operation:
    case NodeKind::cast:
    case NodeKind::reduction:
      return 3;
  }
  return 4;
}

}  // namespace

bool is_commutative(Op op) noexcept {
  switch (op) {
    case Op::add:
    case Op::multiply:
    case Op::min:
    case Op::max:
    case Op::fma:
    case Op::equal:
    case Op::not_equal:
    case Op::logical_and:
    case Op::logical_or:
      return true;
    default:
      return false;
  }
}

NodeId Nodes::unique(const Node& node) {
  const std::uint64_t hash = hash_of(node);
  const auto [first, last] = ids_.equal_range(hash);
  for (auto at = first; at != last; ++at)
    if (nodes_[at->second] == node) return at->second;
  if (nodes_.size() >= most_nodes) refuse_size(most_nodes, "operations");
  nodes_.push_back(node);
  const auto id = static_cast<NodeId>(nodes_.size() - 1);
  ids_.emplace(hash, id);
  return id;
}

NodeId Nodes::constant(double value) {
  // There is one NaN: no program can observe its sign and payload.
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  return unique({.kind = NodeKind::constant, .constant = value});
}

NodeId Nodes::input(std::string_view name) {
  const auto at = std::ranges::find(inputs_, name);
  const auto index = static_cast<std::size_t>(at - inputs_.begin());
  if (index >= most_inputs) refuse_size(most_inputs, "names that are read");
  if (at == inputs_.end()) inputs_.emplace_back(name);
  return unique({.kind = NodeKind::input, .input = static_cast<std::uint8_t>(index)});
}

NodeId Nodes::cast(NodeId x, const CastRule& rule) {
  x = number(x);
  // Rounding twice to one type equals rounding once.
  if (nodes_[x].kind == NodeKind::cast && nodes_[x].cast == rule) return x;
  return unique({.kind = NodeKind::cast, .operands = {x, no_node, no_node}, .cast = rule});
}

NodeId Nodes::reduction(NodeId x, BlockReduction reduction) {
  rewrite_reduction(*this, x = number(x), reduction.kind);
  return unique(
      {.kind = NodeKind::reduction, .operands = {x, no_node, no_node}, .reduction = reduction});
}

NodeId Nodes::number(NodeId x) {
  if (!is_truth(x)) return x;
  return operation({Op::where, {x, constant(1), constant(0)}});
}

bool Nodes::is_truth(NodeId id) const noexcept {
  if (nodes_[id].kind != NodeKind::operation) return false;
  const OpKind kind = row_of(nodes_[id].op).kind;
  return kind == OpKind::compare || kind == OpKind::logical;
}

bool Nodes::is_constant(NodeId id, double value) const noexcept {
  return is_constant(id) &&
         std::bit_cast<std::uint64_t>(nodes_[id].constant) == std::bit_cast<std::uint64_t>(value);
}

NodeId Nodes::operation(Operation operation) {
  const OpRow& row = row_of(operation.op);
  std::fill(operation.x.begin() + row.arity, operation.x.end(), no_node);
  if (row.kind == OpKind::real)
    for (int at = 0; at < row.arity; ++at) {
      NodeId& x = operation.x[static_cast<std::size_t>(at)];
      x = number(x);
    }
  if (row.kind == OpKind::choose) {
    operation.x[1] = number(operation.x[1]);
    operation.x[2] = number(operation.x[2]);
  }
  if (const std::optional<NodeId> simpler = rewrite(*this, operation)) return *simpler;
  if (is_commutative(operation.op) && is_before(operation.op, operation.x[1], operation.x[0]))
    std::swap(operation.x[0], operation.x[1]);
  return unique({.kind = NodeKind::operation, .op = operation.op, .operands = operation.x});
}

bool Nodes::is_before(Op op, NodeId a, NodeId b) const {
  const bool is_product = op == Op::multiply || op == Op::fma;
  const auto place = is_product ? place_in_product : place_in_sum;
  const int by_place = compare(place(nodes_[a]), place(nodes_[b]));
  return by_place != 0 ? by_place < 0 : order(a, b) < 0;
}

// Nodes are unique, so two ids differ in structure, and the first operands that differ decide: one
// path down, however much is shared.
int Nodes::order(NodeId a, NodeId b) const {
  while (a != b) {
    const Node& x = nodes_[a];
    const Node& y = nodes_[b];
    if (const int by_place = compare(place_in_sum(x), place_in_sum(y)); by_place != 0)
      return by_place;
    if (x.kind == NodeKind::input) return compare_names(inputs_[x.input], inputs_[y.input]);
    if (x.kind == NodeKind::constant)
      return compare(std::bit_cast<std::int64_t>(x.constant),
                     std::bit_cast<std::int64_t>(y.constant));
    if (x.kind != y.kind) return compare(x.kind, y.kind);
    if (x.kind == NodeKind::operation && x.op != y.op)
      return row_of(x.op).name.compare(row_of(y.op).name);
    if (x.kind == NodeKind::reduction && x.reduction != y.reduction)
      return compare_reductions(x.reduction, y.reduction);
    if (x.operands == y.operands) return compare_casts(x.cast, y.cast);
    const auto [left, right] = std::ranges::mismatch(x.operands, y.operands);
    a = *left;
    b = *right;
  }
  return 0;
}

}  // namespace gemmery::epilogue
