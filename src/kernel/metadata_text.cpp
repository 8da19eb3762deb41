// SPDX-License-Identifier: Apache-2.0
// Metadata as text.
#include <gemmery/kernel.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace gemmery {
namespace {

std::string operand_text(std::string_view operand, const OperandRule& rule) {
  const int alignment = std::max<int>(rule.alignment, bit_width(rule.dtype) / 8);
  return fmt::format("{} {} ({} layout, aligned to {} byte{}), ", operand, name(rule.dtype),
                     name(rule.layout), alignment, alignment == 1 ? "" : "s");
}

std::string operands_text(const OperandRules& rules) {
  return operand_text("A", rules.a) + operand_text("B", rules.b) +
         (rules.has_c ? operand_text("C", rules.c) : "") + operand_text("out", rules.out) +
         fmt::format("accumulators {}", name(rules.accumulator));
}

}  // namespace

std::string to_string(const Metadata& metadata) {
  std::string text = metadata.kernel_name;
  const auto add = [&](std::string_view field, std::string_view value) {
    if (!value.empty()) fmt::format_to(std::back_inserter(text), "\n  {:<8}  {}", field, value);
  };
  std::string targets, design;
  for (const Target target : metadata.supported_targets) targets += " " + to_string(target);
  for (const DesignField& field : metadata.design)
    fmt::format_to(std::back_inserter(design), "{}{}={}", design.empty() ? "" : " ", field.name,
                   field.value);
  add("family", fmt::format("{}/{} for{}", metadata.provider, metadata.kernel_class, targets));
  add("operands", operands_text(metadata.operands));
  add("design", design);
  add("epilogue", metadata.epilogue);
  return text;
}

}  // namespace gemmery
