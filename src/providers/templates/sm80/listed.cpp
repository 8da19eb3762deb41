// SPDX-License-Identifier: Apache-2.0
// The list of all sm80 kernels: their rules and tiles. Problems may get others.
#include "providers/templates/sm80/listed.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "providers/templates/name_words.hpp"
#include "providers/templates/sm80/convolution.hpp"

namespace gemmery::templates {
namespace {

constexpr abi::GroupSchedule group_schedules[] = {
    abi::GroupSchedule::device, abi::GroupSchedule::persistent, abi::GroupSchedule::host};

// Calls add(tile) for the listed kernels of groups: every schedule for rows in order, for rows by
// index, and with zeros outside. A problem may need both of the latter.
template <class Add>
void walk_group_forms(const OperandRules& rules, Add&& add) {
  constexpr Sm80GroupForm forms[] = {{},
                                     {.clears_outside = true},
                                     {.indexed = abi::IndexedExtent::rows},
                                     {.indexed = abi::IndexedExtent::columns}};
  for (const Sm80GroupForm& form : forms) {
    if (!takes_indices(rules, form.indexed)) continue;
    for (const Sm80Tile& tile : sm80_tiles(rules, form))
      for (const abi::GroupSchedule schedule : group_schedules)
        if (const auto scheduled = scheduled_tile(tile, rules, schedule)) add(*scheduled);
  }
  for (const Sm80Tile& tile : sm80_tiles(rules)) add(with_groups(tile, abi::GroupSchedule::list));
}

// Calls add(tile) for the listed kernels of convolutions.
template <class Add>
void walk_convolutions(const OperandRules& rules, Add&& add) {
  for (std::size_t conv = 1; conv < sm80_conv_count; ++conv) {
    if (!takes_conv_layouts(rules, static_cast<Sm80Conv>(conv))) continue;
    for (const Sm80Tile& tile : sm80_tiles(rules, {}, static_cast<Sm80Conv>(conv))) add(tile);
  }
}

// Rules for A or B in the list of all kernels. If few are listed, these are the widest accesses and
// the narrowest ones; a problem may get others.
std::vector<OperandRule> listed_input_rules(const Sm80Products& products, bool is_a,
                                            bool lists_few) {
  const DType dtype = is_a ? products.a : products.b;
  std::vector<OperandRule> rules = is_mixed_sm80(products.a, products.b)
                                       ? sm80_mixed_input_rules(dtype, is_a)
                                       : sm80_input_rules(dtype);
  const std::uint8_t narrowest =
      std::ranges::min_element(rules, {}, &OperandRule::alignment)->alignment;
  if (lists_few)
    std::erase_if(rules, [&](const OperandRule& rule) {
      return rule.alignment != widest_access && rule.alignment != narrowest;
    });
  return rules;
}

// Calls visit(rules) for the rules of listed kernels for operands of these types. In grouped
// kernels, and where one operand is decoded, C has the type of out.
template <class Visit>
void walk_rules(const Sm80Products& products, bool has_groups, Visit&& visit) {
  const bool lists_few = has_groups || is_mixed_sm80(products.a, products.b);
  const auto outputs = sm80_outputs(products.accumulator);
  const auto output_rules = has_groups ? sm80_grouped_output_rules : sm80_output_rules;
  for (const OperandRule& a : listed_input_rules(products, true, lists_few))
    for (const OperandRule& b : listed_input_rules(products, false, lists_few))
      for (const DType out : outputs)
        for (const OperandRule& out_rule : output_rules(out)) {
          OperandRules rules{.a = a,
                             .b = b,
                             .c = {},
                             .out = out_rule,
                             .accumulator = products.accumulator,
                             .math = products.math};
          visit(rules);
          rules.has_c = true;
          for (const DType c : outputs) {
            if (lists_few && c != out) continue;
            const bool is_single = out_rule.alignment == byte_width(out);
            rules.c = {c, out_rule.layout,
                       is_single ? static_cast<std::uint8_t>(byte_width(c)) : out_rule.alignment};
            visit(rules);
          }
        }
}

// Calls visit(products) for all types of which one operand is decoded.
template <class Visit>
void walk_mixed_products(Visit&& visit) {
  for (const DType code : sm80_codes())
    for (const DType half : {DType::bfloat16, DType::float16}) {
      visit(Sm80Products{half, code, DType::float32, Math::native});
      visit(Sm80Products{code, half, DType::float32, Math::native});
    }
}

}  // namespace

void for_each_listed_sm80(const std::function<void(const OperandRules&, const Sm80Tile&)>& visit) {
  const auto visit_plain = [&](const OperandRules& rules) {
    for (const Sm80Tile& tile : sm80_tiles(rules)) visit(rules, tile);
  };
  const auto visit_forms = [&](const OperandRules& rules) {
    const auto add = [&](const Sm80Tile& tile) { visit(rules, tile); };
    walk_group_forms(rules, add);
    walk_convolutions(rules, add);
  };
  for (const Sm80Products& products : sm80_products()) walk_rules(products, false, visit_plain);
  walk_mixed_products(
      [&](const Sm80Products& products) { walk_rules(products, false, visit_plain); });
  for (const Sm80Products& products : sm80_products()) walk_rules(products, true, visit_forms);
}

}  // namespace gemmery::templates
