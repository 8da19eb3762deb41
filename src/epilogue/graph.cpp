// SPDX-License-Identifier: Apache-2.0
// The rows of ops.def as data, and properties of nodes.
#include "epilogue/graph.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>

namespace gemmery::epilogue {
namespace {

// The lists of turning points as separate objects, so that rows can point at them.
#define GEMMERY_TURNS(...) \
  { __VA_ARGS__ }
#define GEMMERY_OP(name, arity, kind, formula, turns, ...) \
  constexpr std::initializer_list<double> turns_of_##name turns;
#include <gemmery/ops.def>

constexpr std::optional<OpErrors> brief_errors_of(std::string_view op) {
#define GEMMERY_BRIEF(name, formula, relative, absolute) \
  if (op == #name) return OpErrors{relative, absolute};
#include <gemmery/ops.def>
  return std::nullopt;
}

#define GEMMERY_OP(name, arity, kind, formula, turns, relative, absolute) \
  OpRow{#name,                                                            \
        arity,                                                            \
        OpKind::kind,                                                     \
        #formula,                                                         \
        {turns_of_##name.begin(), turns_of_##name.size()},                \
        {relative, absolute},                                             \
        brief_errors_of(#name)},
constexpr OpRow rows[] = {
#include <gemmery/ops.def>
};

}  // namespace

const OpRow& row_of(Op op) noexcept { return rows[static_cast<std::size_t>(op)]; }

std::size_t count_ops() noexcept { return std::size(rows); }

std::optional<Op> find_op(std::string_view name) noexcept {
  const auto* const row = std::ranges::find(rows, name, &OpRow::name);
  if (row == std::end(rows)) return std::nullopt;
  return static_cast<Op>(row - std::begin(rows));
}

bool is_truth(const Graph& graph, NodeId node) noexcept {
  const Node& it = graph.nodes[node];
  if (it.kind != NodeKind::operation) return false;
  const OpKind kind = row_of(it.op).kind;
  return kind == OpKind::compare || kind == OpKind::logical;
}

}  // namespace gemmery::epilogue
