// SPDX-License-Identifier: Apache-2.0
#include "operation/grammar_scales.hpp"

#include <algorithm>
#include <utility>

#include "operation/companions.hpp"

namespace gemmery::grammar {
namespace {

using operation::companion_extents;
using operation::operand_extents;
using operation::OperandExtents;

// --- reading ------------------------------------------------------------------------------------

ScaleBlock read_block(const Word& word, std::string_view text) {
  const auto block = parse_scale_block(text);
  if (!block)
    refuse(word, "a block in brackets: tensor, row or ROWSxK such as 1x128, 128x128, 1xall");
  return *block;
}

// The layout's word as one of operands: rows of k (":k"), or of m or n.
std::string as_operand(const Word& word, std::string_view layout, bool is_a) {
  const std::string_view along = is_a ? "m" : "n";
  if (layout.empty() || layout == "k") return {};
  if (layout == along) return ":c";
  refuse(word, std::string("\":k\" (adjacent along k), \":") + std::string(along) +
                   "\" or \":swizzled\" after the block");
}

void read_table(const Word& word, std::string_view text, std::optional<CodeTable>& table) {
  if (table) refuse(word, "each field once");
  table = parse_code_table(text);
  if (!table) refuse(word, "nf4, nf4.bf16, nf4.f16, or sixteen numbers joined by commas");
}

void read_order(const Word& word, std::string_view text, std::optional<ElementOrder>& order) {
  if (order) refuse(word, "each field once");
  for (const ElementOrder one : {ElementOrder::strided, ElementOrder::fragments})
    if (text == name(one)) order = one;
  if (!order) refuse(word, "strided or fragments");
}

// TYPE[BLOCK]:LAYOUT/modifiers
CompanionWords read_companion(const Word& word, std::string_view text, bool is_a) {
  CompanionWords words;
  const std::size_t slash = text.find('/');
  std::string_view head = text.substr(0, slash);
  const std::string_view modifiers =
      slash == std::string_view::npos ? std::string_view{} : text.substr(slash);
  std::string_view layout;
  if (const std::size_t colon = head.find(':'); colon != std::string_view::npos) {
    layout = head.substr(colon + 1);
    head = head.substr(0, colon);
  }
  if (const std::size_t bracket = head.find('['); bracket != std::string_view::npos) {
    if (!head.ends_with(']')) refuse(word, "']' after the block");
    words.block = read_block(word, head.substr(bracket + 1, head.size() - bracket - 2));
    head = head.substr(0, bracket);
  }
  if (layout == "swizzled") {
    words.layout = ScaleLayout::swizzled_128x4;
    layout = {};
  }
  words.values =
      read_operand(word, Role::matrix,
                   std::string(head) + as_operand(word, layout, is_a) + std::string(modifiers));
  if (words.values.has_pointers) refuse(word, "batch= for scales", {}, ErrorKind::unsupported);
  return words;
}

// The extents under which values are spelled. Of no groups they are those of one: whether groups
// share a block depends on its extents, which are fewer where the operand is no larger.
operation::MatrixExtents spelled_extents(ScaleBlock block, ScaleLayout layout,
                                         const OperandExtents& operand) {
  operation::MatrixExtents extents = companion_extents(block, layout, operand);
  extents.batch = std::max<std::int64_t>(extents.batch, 1);
  return extents;
}

CompanionType make_companion(const CompanionWords& words, ScaleBlock fallback,
                             const OperandExtents& extents) {
  const ScaleBlock block = words.block.value_or(fallback);
  const bool is_swizzled = words.layout == ScaleLayout::swizzled_128x4;
  if (is_swizzled && (words.values.leading || words.values.strides))
    refuse(words.values.word, "batch= or align= beside :swizzled");
  return {.block = operation::settle_block(block, words.layout, extents),
          .layout = words.layout,
          .values = read_matrix(words.values, spelled_extents(block, words.layout, extents))};
}

void apply(const std::vector<CompanionWords>& scales, const std::optional<CompanionWords>& zero,
           const OperandExtents& extents, OperandCompanions& companions) {
  for (const CompanionWords& scale : scales)
    companions.scales.push_back(make_companion(scale, scale_block::tensor, extents));
  if (!zero) return;
  const ScaleBlock first = companions.scales.empty() ? ScaleBlock{} : companions.scales[0].block;
  companions.zero_point = make_companion(*zero, first, extents);
}

// --- printing -----------------------------------------------------------------------------------

std::string companion_text(const CompanionType& companion, const OperandExtents& extents,
                           bool is_a) {
  const bool is_swizzled = companion.layout == ScaleLayout::swizzled_128x4;
  std::string text =
      matrix_text(companion.values, spelled_extents(companion.block, companion.layout, extents));
  const std::size_t end = text.find_first_of(":/");
  std::string rest = end == std::string::npos ? "" : text.substr(end);
  if (rest.starts_with(":c")) rest = (is_a ? ":m" : ":n") + rest.substr(2);
  return text.substr(0, end) + "[" + to_string(companion.block) + "]" +
         (is_swizzled ? ":swizzled" : "") + rest;
}

std::string operand_text(const OperandCompanions& companions, const OperandExtents& extents,
                         bool is_a) {
  std::string text;
  for (const CompanionType& scale : companions.scales)
    text += (text.empty() ? (is_a ? " scale_a=" : " scale_b=") : "*") +
            companion_text(scale, extents, is_a);
  if (companions.zero_point)
    text +=
        (is_a ? " zero_a=" : " zero_b=") + companion_text(*companions.zero_point, extents, is_a);
  if (companions.table) text += (is_a ? " table_a=" : " table_b=") + to_string(*companions.table);
  if (companions.order != ElementOrder::strided)
    text += (is_a ? " order_a=" : " order_b=") + std::string(name(companions.order));
  return text;
}

}  // namespace

bool is_scale_field(std::string_view key) noexcept {
  return key == "scale_a" || key == "scale_b" || key == "zero_a" || key == "zero_b" ||
         key == "table_a" || key == "table_b" || key == "order_a" || key == "order_b";
}

void read_scale_field(const Word& word, std::string_view key, std::string_view value,
                      ScaleWords& words) {
  const bool is_a = key.ends_with("a");
  if (key.starts_with("table"))
    return read_table(word, value, is_a ? words.table_a : words.table_b);
  if (key.starts_with("order"))
    return read_order(word, value, is_a ? words.order_a : words.order_b);
  if (key.starts_with("zero")) {
    auto& zero = is_a ? words.zero_a : words.zero_b;
    if (zero) refuse(word, "each field once");
    zero = read_companion(word, value, is_a);
    return;
  }
  auto& scales = is_a ? words.scale_a : words.scale_b;
  if (!scales.empty()) refuse(word, "each field once", "several scales are joined by *");
  for (const std::string_view one : split(value, '*'))
    scales.push_back(read_companion(word, one, is_a));
}

void apply_scales(const ScaleWords& words, GemmProblem& problem) {
  apply(words.scale_a, words.zero_a, operand_extents(problem, true), problem.a_companions);
  apply(words.scale_b, words.zero_b, operand_extents(problem, false), problem.b_companions);
  problem.a_companions.table = words.table_a;
  problem.b_companions.table = words.table_b;
  problem.a_companions.order = words.order_a.value_or(ElementOrder::strided);
  problem.b_companions.order = words.order_b.value_or(ElementOrder::strided);
}

std::string scales_text(const GemmProblem& problem) {
  if (!operation::has_companions(problem)) return {};
  return operand_text(problem.a_companions, operand_extents(problem, true), true) +
         operand_text(problem.b_companions, operand_extents(problem, false), false);
}

}  // namespace gemmery::grammar
