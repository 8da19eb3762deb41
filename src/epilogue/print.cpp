// SPDX-License-Identifier: Apache-2.0
// A graph as text. Nodes used more than once get a name: a result's own name, otherwise one with a
// leading underscore, which the text form reserves for values that are never stored.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "epilogue/rewrite.hpp"

namespace gemmery::epilogue {
namespace {

// The precedence of a piece of text; an operand with a lower one than its place requires is put in
// parentheses.
enum class Binding {
  any,
  logical_or,
  logical_and,
  logical_not,
  compare,
  sum,
  product,
  sign,
  power,
  atom
};

struct Piece {
  std::string text;
  Binding binding = Binding::atom;
  int depth = 1;
};

struct PrintedInfix {
  Op op;
  std::string_view sign;
  Binding binding;
  Binding left;
  Binding right;
};

constexpr PrintedInfix infixes[] = {
    {Op::logical_or, " or ", Binding::logical_or, Binding::logical_or, Binding::logical_and},
    {Op::logical_and, " and ", Binding::logical_and, Binding::logical_and, Binding::logical_not},
    {Op::less, " < ", Binding::compare, Binding::sum, Binding::sum},
    {Op::less_equal, " <= ", Binding::compare, Binding::sum, Binding::sum},
    {Op::equal, " == ", Binding::compare, Binding::sum, Binding::sum},
    {Op::not_equal, " != ", Binding::compare, Binding::sum, Binding::sum},
    {Op::add, " + ", Binding::sum, Binding::sum, Binding::product},
    {Op::subtract, " - ", Binding::sum, Binding::sum, Binding::product},
    {Op::multiply, " * ", Binding::product, Binding::product, Binding::sign},
    {Op::divide, " / ", Binding::product, Binding::product, Binding::sign},
    {Op::pow, " ** ", Binding::power, Binding::atom, Binding::sign},
};

const PrintedInfix* infix_of(Op op) {
  for (const PrintedInfix& infix : infixes)
    if (infix.op == op) return &infix;
  return nullptr;
}

std::string_view name_of(Reduction reduction) {
  constexpr std::string_view names[] = {"", "sum", "max", "min", "amax"};
  return names[static_cast<std::size_t>(reduction)];
}

// Deeper pieces are split by a name, so that the text can be parsed again: the parser limits nested
// parentheses.
constexpr int deepest_piece = 24;

class Printer {
 public:
  explicit Printer(const Graph& graph)
      : graph_(graph), uses_(graph.nodes.size(), 0), names_(graph.nodes.size()) {
    for (const Node& node : graph.nodes)
      for (const NodeId x : node.operands)
        if (x != no_node) ++uses_[x];
    for (const Output& output : graph.outputs) ++uses_[output.value];
    cuts_.resize(graph.nodes.size(), false);
    mark_cuts();
  }

  std::string print() {
    for (const Output& output : graph_.outputs)
      if (!is_printed(output)) state(output);
    return std::move(text_);
  }

 private:
  bool is_leaf(NodeId id) const {
    const NodeKind kind = graph_.nodes[id].kind;
    return kind != NodeKind::operation && kind != NodeKind::cast && kind != NodeKind::reduction;
  }

  // Marks nodes whose text would nest too deeply above named ones.
  void mark_cuts() {
    std::vector<int> depth(graph_.nodes.size(), 1);
    for (std::size_t id = 0; id < graph_.nodes.size(); ++id) {
      for (const NodeId x : graph_.nodes[id].operands)
        if (x != no_node && !is_named(x)) depth[id] = std::max(depth[id], depth[x] + 1);
      cuts_[id] = depth[id] >= deepest_piece && !is_leaf(static_cast<NodeId>(id));
    }
  }

  bool is_named(NodeId id) const { return !is_leaf(id) && (uses_[id] > 1 || cuts_[id]); }

  bool is_printed(const Output& output) const {
    return output.reduction == Reduction::none && !is_leaf(output.value) &&
           names_[output.value] == output.name;
  }

  void append(std::string_view name, std::string_view value) {
    if (!text_.empty()) text_ += "; ";
    text_ += name;
    text_ += " = ";
    text_ += value;
  }

  void state(const Output& output) {
    const NodeId id = output.value;
    if (output.reduction != Reduction::none) {
      append(output.name, fmt::format("{}({})", name_of(output.reduction), reference(id)));
    } else if (is_leaf(id) || !names_[id].empty()) {
      append(output.name, reference(id));
    } else {
      define(id, output.name);
    }
  }

  void define(NodeId id, std::string name) {
    append(name, piece(id).text);
    names_[id] = std::move(name);
  }

  // The result's name, or the next name with an underscore.
  std::string name_for(NodeId id) {
    for (const Output& output : graph_.outputs)
      if (output.value == id && output.reduction == Reduction::none) return output.name;
    return fmt::format("_{}", ++named_);
  }

  std::string reference(NodeId id) { return operand(id, Binding::any); }

  std::string operand(NodeId id, Binding place) {
    if (is_named(id)) {
      if (names_[id].empty()) {
        const Piece value = piece(id);
        std::string name = name_for(id);
        append(name, value.text);
        names_[id] = std::move(name);
      }
      return names_[id];
    }
    Piece value = piece(id);
    return value.binding < place ? '(' + value.text + ')' : std::move(value.text);
  }

  Piece piece(NodeId id) {
    const Node& node = graph_.nodes[id];
    switch (node.kind) {
      case NodeKind::accumulator:
        return {"accum"};
      case NodeKind::input:
        return {graph_.inputs[node.input]};
      case NodeKind::constant:
        return {fmt::format("{}", node.constant),
                std::signbit(node.constant) ? Binding::sign : Binding::atom};
      case NodeKind::cast:
        return {cast_text(node)};
      case NodeKind::reduction:
        return {reduction_text(node)};
      case NodeKind::operation:
        break;
    }
    return operation(node);
  }

  std::string cast_text(const Node& node) {
    return fmt::format("cast({}, {}{}{})", reference(node.operands[0]), alias(node.cast.dtype),
                       node.cast.rounding == Rounding::toward_zero ? ", toward_zero" : "",
                       node.cast.overflow == Overflow::saturate ? ", saturate" : "");
  }

  std::string reduction_text(const Node& node) {
    return fmt::format("block_{}({}, {}, {})", name_of(node.reduction.kind),
                       reference(node.operands[0]), node.reduction.block.rows,
                       node.reduction.block.columns);
  }

  Piece operation(const Node& node) {
    if (node.op == Op::negate)
      return {'-' + operand(node.operands[0], Binding::sign), Binding::sign};
    if (node.op == Op::logical_not)
      return {"not " + operand(node.operands[0], Binding::logical_not), Binding::logical_not};
    if (const PrintedInfix* infix = infix_of(node.op)) return binary(node, *infix);
    std::string text = fmt::format("{}({}", row_of(node.op).name, reference(node.operands[0]));
    for (int at = 1; at < row_of(node.op).arity; ++at)
      text += ", " + reference(node.operands[static_cast<std::size_t>(at)]);
    return {text + ')'};
  }

  // x + -1 prints as x - 1, and 0 < x as x > 0.
  Piece binary(const Node& node, const PrintedInfix& infix) {
    const auto [left, right, none] = node.operands;
    const Node& last = graph_.nodes[right];
    if (node.op == Op::add && last.kind == NodeKind::constant && std::signbit(last.constant))
      return {operand(left, infix.left) + fmt::format(" - {}", -last.constant), infix.binding};
    const bool turns = (node.op == Op::less || node.op == Op::less_equal) &&
                       graph_.nodes[left].kind == NodeKind::constant &&
                       last.kind != NodeKind::constant;
    if (turns)
      return {operand(right, infix.right) + (node.op == Op::less ? " > " : " >= ") +
                  operand(left, infix.left),
              infix.binding};
    std::string text = operand(left, infix.left);
    text += infix.sign;
    text += operand(right, infix.right);
    return {std::move(text), infix.binding};
  }

  const Graph& graph_;
  std::vector<int> uses_;
  std::vector<bool> cuts_;
  std::vector<std::string> names_;
  std::string text_;
  int named_ = 0;
};

}  // namespace

std::string print(const Graph& graph) { return Printer(graph).print(); }

}  // namespace gemmery::epilogue
