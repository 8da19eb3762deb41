// SPDX-License-Identifier: Apache-2.0
// The table of epilogues that kernels are made for: ids, digests and their rules.
#include <fmt/format.h>
#include <xxhash.h>
#include <gemmery/epilogue.hpp>
#include <gemmery/error.hpp>

#include <algorithm>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "core/invariant.hpp"
#include "epilogue/blocks.hpp"
#include "epilogue/graph.hpp"
#include "epilogue/refusal.hpp"

namespace gemmery {
namespace {

using epilogue::Block;

constexpr std::string_view default_text = "D = alpha * accum + beta * C";

struct Entry {
  EpilogueRules rules;
  std::string digest;
};

// Text that distinguishes any two epilogues and is the same on every platform.
std::string canonical_text(const EpilogueRules& rules) {
  std::string text = rules.program.text();
  for (const EpilogueOperandRule& rule : rules.operands) {
    text += fmt::format("\n{} {}", rule.name, rule.is_output ? "out" : "in");
    if (rule.is_number)
      text += " number";
    else
      text += fmt::format(" {} {:d}{:d}{:d} {} {}", name(rule.dtype), rule.varies_l, rule.varies_m,
                          rule.varies_n, static_cast<int>(rule.adjacent), rule.alignment);
    if (rule.layout != ScaleLayout::strided) text += fmt::format(" {}", name(rule.layout));
  }
  return text;
}

std::string digest_of(const EpilogueRules& rules) {
  const std::string text = canonical_text(rules);
  constexpr std::uint64_t twelve_digits = 0xffff'ffff'ffff;
  return fmt::format("{:012x}", XXH3_64bits(text.data(), text.size()) & twelve_digits);
}

// Only the name of a number matters.
EpilogueOperandRule normalised(const EpilogueOperandRule& rule) {
  if (!rule.is_number) return rule;
  return {.name = rule.name, .is_number = true};
}

const EpilogueOperandRule* find_rule(const EpilogueRules& rules, std::string_view name) {
  const auto at = std::ranges::find(rules.operands, name, &EpilogueOperandRule::name);
  return at == rules.operands.end() ? nullptr : &*at;
}

// The block of a result; the rules of the program's inputs come first.
Block block_of(const EpilogueRules& rules, std::string_view result) {
  std::vector<Block> of_inputs;
  for (const EpilogueOperandRule& rule : rules.operands)
    if (!rule.is_output) of_inputs.push_back(epilogue::block_of_input(rule));
  const std::vector<epilogue::Output>& outputs = rules.program.graph().outputs;
  return epilogue::block_of_output(rules.program.graph(),
                                   *std::ranges::find(outputs, result, &epilogue::Output::name),
                                   of_inputs);
}

// The program without results that no tensor is bound to, and the rules of the rest in its order:
// programs that differ only in unbound results are equal.
EpilogueRules canonical(const EpilogueRules& given) {
  std::vector<std::string> stored;
  for (const EpilogueOperandRule& rule : given.operands)
    if (rule.is_output) stored.push_back(rule.name);
  EpilogueRules result{keep_results(given.program, stored), {}};
  for (const std::string& input : result.program.inputs()) {
    const EpilogueOperandRule* const rule = find_rule(given, input);
    if (rule == nullptr || rule->is_output)
      epilogue::refuse("a rule for the operand " + input, "none");
    result.operands.push_back(normalised(*rule));
  }
  for (const std::string& output : result.program.outputs()) {
    if (output == "D") continue;
    const EpilogueOperandRule* const rule = find_rule(given, output);
    if (rule->is_number) epilogue::refuse("a tensor for the result " + output, "a number");
    result.operands.push_back(*rule);
    result.operands.back().block = block_of(result, output);
  }
  const std::vector<std::string> names = given.program.outputs();
  for (const std::string& name : stored)
    if (std::ranges::find(names, name) == names.end())
      epilogue::refuse("rules of the program's operands", "one of " + name);
  return result;
}

// Entries never move and are never destroyed.
class Table {
 public:
  Table() { entries_.push_back({{epilogue::linear_combination(), {}}, ""}); }

  EpilogueId add(EpilogueRules rules) {
    std::string digest = digest_of(rules);
    const std::unique_lock lock(mutex_);
    if (const auto known = ids_.find(digest); known != ids_.end()) {
      const EpilogueRules& other = at(known->second).rules;
      // A digest has 2^48 values. A second epilogue under one name could run the other's kernels.
      if (other.program != rules.program || other.operands != rules.operands)
        throw Error({.kind = ErrorKind::unsupported,
                     .operand = "epilogue",
                     .expected = "a digest of its own",
                     .got = digest + ", which is that of \"" + other.program.text() + '"',
                     .hint = "give one of its results another name"});
      return known->second;
    }
    const auto id = static_cast<EpilogueId>(entries_.size());
    ids_.emplace(digest, id);
    entries_.push_back({std::move(rules), std::move(digest)});
    return id;
  }

  const Entry& entry(EpilogueId id) {
    const std::shared_lock lock(mutex_);
    return at(id);
  }

  EpilogueId find(const std::string& digest) {
    const std::shared_lock lock(mutex_);
    const auto known = ids_.find(digest);
    return known == ids_.end() ? default_epilogue : known->second;
  }

 private:
  const Entry& at(EpilogueId id) const {
    const auto index = static_cast<std::size_t>(id);
    require(index < entries_.size(), "an epilogue that was never interned");
    return entries_[index];
  }

  std::shared_mutex mutex_;
  std::deque<Entry> entries_;
  std::unordered_map<std::string, EpilogueId> ids_;
};

Table& table() {
  static Table& table = *new Table;
  return table;
}

}  // namespace

EpilogueId intern(const EpilogueRules& rules) { return table().add(canonical(rules)); }

const EpilogueRules& rules_of(EpilogueId epilogue) noexcept {
  return table().entry(epilogue).rules;
}

std::string_view text(EpilogueId epilogue) noexcept {
  if (epilogue == default_epilogue) return default_text;
  return rules_of(epilogue).program.text();
}

std::string digest(EpilogueId epilogue) {
  return epilogue == default_epilogue ? "" : table().entry(epilogue).digest;
}

EpilogueId find_epilogue(std::string_view digest) noexcept {
  return digest.empty() ? default_epilogue : table().find(std::string(digest));
}

EpilogueId parse_epilogue(std::string_view program) {
  if (epilogue::Program(program) == epilogue::linear_combination()) return default_epilogue;
  throw Error(
      {.kind = ErrorKind::unsupported,
       .operand = "epilogue",
       .expected = '"' + std::string(default_text) + '"',
       .got = '"' + std::string(program.substr(0, 200)) + '"',
       .hint = "a program other than the default needs the types and shapes of its operands"});
}

}  // namespace gemmery
