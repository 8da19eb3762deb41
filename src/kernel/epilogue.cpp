// SPDX-License-Identifier: Apache-2.0
// Compares interned epilogues.
#include "kernel/epilogue.hpp"

#include <algorithm>

#include "epilogue/blocks.hpp"
#include "epilogue/graph.hpp"

namespace gemmery::kernel {
namespace {

constexpr std::string_view epilogue_tag = "_e-";
constexpr std::size_t digest_length = 12;

std::string quoted(std::string_view text) { return "\"" + std::string(text.substr(0, 300)) + "\""; }

// True if a kernel that was made for the operand `own` can read `asked`.
bool serves_operand(const EpilogueOperandRule& own, const EpilogueOperandRule& asked) noexcept {
  EpilogueOperandRule as_own = asked;
  as_own.alignment = own.alignment;
  return own == as_own && (own.is_number || asked.alignment % own.alignment == 0);
}

std::string operand_text(const EpilogueOperandRule& rule) {
  if (rule.is_number) return "a number";
  if (rule.block != epilogue::one_element)
    return std::string(alias(rule.dtype)) + " for blocks of " + epilogue::block_text(rule.block) +
           ", " + std::string(name(rule.layout));
  std::string dims;
  for (const auto& [varies, name] :
       {std::pair{rule.varies_l, "l"}, {rule.varies_m, "m"}, {rule.varies_n, "n"}})
    if (varies) dims += (dims.empty() ? "" : ",") + std::string(name);
  const char* const adjacent = rule.adjacent == Adjacent::along_n   ? ", contiguous along n"
                               : rule.adjacent == Adjacent::along_m ? ", contiguous along m"
                                                                    : "";
  return std::string(alias(rule.dtype)) + "[" + (dims.empty() ? "1" : dims) + "]" + adjacent +
         ", aligned to " + std::to_string(rule.alignment) + " bytes";
}

}  // namespace

bool serves_epilogue(EpilogueId kernel, EpilogueId problem) noexcept {
  if (kernel == problem) return true;
  if (kernel == default_epilogue || problem == default_epilogue) return false;
  const EpilogueRules& own = rules_of(kernel);
  const EpilogueRules& asked = rules_of(problem);
  return own.program == asked.program &&
         std::ranges::equal(own.operands, asked.operands, serves_operand);
}

Status check_epilogue(EpilogueId kernel, EpilogueId problem) {
  if (serves_epilogue(kernel, problem)) return Status::success();
  if (kernel == default_epilogue || problem == default_epilogue ||
      !(rules_of(kernel).program == rules_of(problem).program)) {
    return Status::fail("epilogue: expected " + quoted(text(kernel)) + ", got " +
                        quoted(text(problem)));
  }
  const auto& own = rules_of(kernel).operands;
  const auto& asked = rules_of(problem).operands;
  for (std::size_t i = 0; i < std::min(own.size(), asked.size()); ++i) {
    if (serves_operand(own[i], asked[i])) continue;
    return Status::fail("epilogue operand " + own[i].name + ": expected " + operand_text(own[i]) +
                        ", got " + operand_text(asked[i]));
  }
  return Status::fail("epilogue: expected other operands of " + quoted(text(kernel)));
}

std::string node_text(const epilogue::Graph& graph, const epilogue::Node& node,
                      std::string_view accumulator) {
  switch (node.kind) {
    case epilogue::NodeKind::operation:
      return std::string(epilogue::row_of(node.op).name);
    case epilogue::NodeKind::cast:
      return "cast to " + std::string(name(node.cast.dtype));
    case epilogue::NodeKind::reduction:
      return "reduction of blocks of " + epilogue::block_text(node.reduction.block);
    case epilogue::NodeKind::input:
      return graph.inputs[node.input];
    case epilogue::NodeKind::constant:
      return "a constant";
    case epilogue::NodeKind::accumulator:
      break;
  }
  return std::string(accumulator);
}

Status refuse_node(EpilogueId epilogue, std::size_t node, std::string_view why) {
  const epilogue::Graph& graph = rules_of(epilogue).program.graph();
  std::string text = "epilogue: " + std::string(why) + ", got " + quoted(gemmery::text(epilogue));
  if (node < graph.nodes.size())
    text += " (its node " + std::to_string(node) + ": " + node_text(graph, graph.nodes[node]) + ")";
  return Status::fail(std::move(text));
}

std::string epilogue_suffix(EpilogueId epilogue) {
  if (epilogue == default_epilogue) return {};
  return std::string(epilogue_tag) + digest(epilogue);
}

std::optional<EpilogueId> take_epilogue_suffix(std::string_view& name) {
  const std::size_t length = epilogue_tag.size() + digest_length;
  if (name.size() < length || !name.substr(name.size() - length).starts_with(epilogue_tag))
    return default_epilogue;
  const EpilogueId found = find_epilogue(name.substr(name.size() - digest_length));
  if (found == default_epilogue) return std::nullopt;
  name.remove_suffix(length);
  return found;
}

}  // namespace gemmery::kernel
