// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/name_words.hpp"

#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "kernel/epilogue.hpp"
#include "kernel/rules.hpp"

namespace gemmery::templates {
namespace {

char layout_letter(LayoutRule rule) noexcept {
  switch (rule) {
    case LayoutRule::row:
      return 'r';
    case LayoutRule::column:
      return 'c';
    case LayoutRule::any:
      return 'x';
  }
  return '?';
}

std::optional<int> read_integer(std::string_view text) {
  int value = 0;
  const auto [after, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || after != text.data() + text.size() || value < 0 ||
      value > 255 * 256)
    return std::nullopt;
  return value;
}

}  // namespace

std::string rule_text(const OperandRule& rule) {
  return fmt::format("{}{}{}", alias(rule.dtype), layout_letter(rule.layout), rule.alignment);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// "f32r16": the letter of the layout is the last character that is not a digit.
std::optional<OperandRule> read_rule(std::string_view text) {
  const std::size_t letter = text.find_last_not_of("0123456789");
  if (letter == std::string_view::npos) return std::nullopt;
  const auto dtype = parse_dtype(text.substr(0, letter));
  const auto alignment = read_integer(text.substr(letter + 1));
  if (!dtype || !alignment || *alignment < 1 || *alignment > widest_access) return std::nullopt;
  for (const LayoutRule layout : {LayoutRule::row, LayoutRule::column, LayoutRule::any}) {
    if (layout_letter(layout) == text[letter]) {
      return OperandRule{
          .dtype = *dtype, .layout = layout, .alignment = static_cast<std::uint8_t>(*alignment)};
    }
  }
  return std::nullopt;
}

std::optional<std::vector<int>> read_integers(std::string_view text, std::size_t count) {
  std::vector<int> values;
  for (const std::string_view part : split(text, 'x')) {
    const auto value = read_integer(part);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  if (values.size() != count) return std::nullopt;
  return values;
}

std::optional<int> read_tagged(std::string_view text, std::string_view tag) {
  if (!text.starts_with(tag)) return std::nullopt;
  return read_integer(text.substr(tag.size()));
}

std::string gemm_name(std::string_view head, const OperandRules& rules, std::string_view design,
                      EpilogueId epilogue) {
  std::string text =
      fmt::format("{}_gemm_{}_{}_{}_acc-{}_{}", head, rule_text(rules.a), rule_text(rules.b),
                  rule_text(rules.out), alias(rules.accumulator), design);
  if (rules.has_c) text += "_c-" + rule_text(rules.c);
  return text + kernel::companion_suffix(rules) + kernel::epilogue_suffix(epilogue);
}

std::optional<GemmNameParts> read_gemm_name(std::string_view name, std::string_view head,
                                            std::size_t design_words, NamedCompanions taken) {
  constexpr std::size_t first_design_word = 6;
  const auto epilogue = kernel::take_epilogue_suffix(name);
  if (!epilogue) return std::nullopt;
  const auto companions = kernel::take_companion_suffix(name);
  if (!companions) return std::nullopt;
  if (taken == NamedCompanions::none && (companions->a.are_used() || companions->b.are_used()))
    return std::nullopt;
  if (taken != NamedCompanions::with_programs && companions->programs != OperandProgramsId::none)
    return std::nullopt;
  const auto words = split(name, '_');
  const std::size_t without_c = first_design_word + design_words;
  if (words.size() < without_c || words.size() > without_c + 1) return std::nullopt;
  if (words[0] != head || words[1] != "gemm" || !words[5].starts_with("acc-")) return std::nullopt;
  const auto a = read_rule(words[2]);
  const auto b = read_rule(words[3]);
  const auto out = read_rule(words[4]);
  const auto accumulator = parse_dtype(words[5].substr(4));
  if (!a || !b || !out || !accumulator) return std::nullopt;
  GemmNameParts parts{.rules = {.a = *a,
                                .b = *b,
                                .c = {},
                                .out = *out,
                                .accumulator = *accumulator,
                                .a_companions = companions->a,
                                .b_companions = companions->b,
                                .programs = companions->programs},
                      .design = {words.begin() + first_design_word,
                                 words.begin() + static_cast<std::ptrdiff_t>(without_c)},
                      .epilogue = *epilogue};
  if (words.size() == without_c) return parts;
  const auto c = words.back().starts_with("c-") ? read_rule(words.back().substr(2)) : std::nullopt;
  if (!c) return std::nullopt;
  parts.rules.c = *c;
  parts.rules.has_c = true;
  return parts;
}

std::string class_line(const OperandRules& rules) {
  const auto operand = [](const char* role, const OperandRule& rule) {
    return fmt::format("{}={}:{}/align={}", role, alias(rule.dtype), name(rule.layout),
                       rule.alignment);
  };
  std::string line =
      fmt::format("gemm {} {} {} acc={}", operand("a", rules.a), operand("b", rules.b),
                  operand("out", rules.out), alias(rules.accumulator));
  return rules.has_c ? line + " " + operand("c", rules.c) : line;
}

std::string list_names(std::span<const DType> dtypes) {
  std::string text;
  for (const DType dtype : dtypes) text += (text.empty() ? "" : ", ") + std::string(name(dtype));
  return text;
}

}  // namespace gemmery::templates
