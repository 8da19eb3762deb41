// SPDX-License-Identifier: Apache-2.0
// Lookup from the innermost scope outwards.
#include "emulator/program/name_scopes.hpp"

#include <charconv>

namespace gemmery::emulator {
namespace {

// "%r17" is number 17 of "%r". Names without a number, or with a leading zero, are not numbered.
struct NumberedName {
  std::string_view prefix;
  std::uint32_t number = 0;
};

std::optional<NumberedName> split_number(std::string_view name) noexcept {
  const auto last_letter = name.find_last_not_of("0123456789");
  const std::size_t begin = last_letter == std::string_view::npos ? 0 : last_letter + 1;
  const std::string_view digits = name.substr(begin);
  if (digits.empty() || (digits.size() > 1 && digits[0] == '0')) return std::nullopt;
  NumberedName result{name.substr(0, begin), 0};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), result.number);
  if (error != std::errc{}) return std::nullopt;
  return result;
}

}  // namespace

void NameScopes::open() {
  scopes_.emplace_back();
  scopes_.back().number = scope_count_++;
}

std::string NameScopes::unique_name(std::string_view name) const {
  std::string unique(name);
  // A name in the text cannot contain '@'.
  if (scopes_.size() > 1) unique.append("@").append(std::to_string(scopes_.back().number));
  return unique;
}

bool NameScopes::declare_register(std::string_view name, RegisterIndex reg) {
  return scopes_.back().registers.try_emplace(name, reg).second;
}

bool NameScopes::declare_register_range(std::string_view prefix, RegisterIndex first,
                                        std::uint32_t count) {
  return scopes_.back().ranges.try_emplace(prefix, Range{first, count}).second;
}

std::string NameScopes::declare_variable(std::string_view name) {
  const auto [at, is_new] = scopes_.back().variables.try_emplace(name, unique_name(name));
  return is_new ? at->second : std::string();
}

std::string NameScopes::declare_label(std::string_view name) {
  const auto [at, is_new] = scopes_.back().labels.try_emplace(name, unique_name(name));
  return is_new ? at->second : std::string();
}

std::optional<RegisterIndex> NameScopes::find_register(std::string_view name) const {
  std::optional<NumberedName> numbered;
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (!scope->registers.empty()) {
      const auto found = scope->registers.find(name);
      if (found != scope->registers.end()) return found->second;
    }
    if (scope->ranges.empty()) continue;
    if (!numbered && !(numbered = split_number(name))) numbered = NumberedName{};
    const auto range = scope->ranges.find(numbered->prefix);
    if (!numbered->prefix.empty() && range != scope->ranges.end() &&
        numbered->number < range->second.count)
      return range->second.first + numbered->number;
  }
  return std::nullopt;
}

const std::string* NameScopes::find_variable(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->variables.find(name);
    if (found != scope->variables.end()) return &found->second;
  }
  return nullptr;
}

void NameScopes::answer(const LabelReference& reference, const std::string& label) {
  if (reference.name == label) return;  // the operand has this text already
  if (!reference.branch_targets.empty()) {
    function_.branch_targets[reference.branch_targets][reference.at] = label;
    return;
  }
  for (Operand& operand : function_.code[reference.at].operands)
    if (operand.kind == Operand::Kind::symbol && operand.text == reference.name)
      operand.text = label;
}

std::vector<LabelReference> NameScopes::answer_references() {
  Scope& scope = scopes_.back();
  std::vector<LabelReference> open_ones;
  for (LabelReference& reference : scope.references) {
    const auto label = scope.labels.find(reference.name);
    if (label == scope.labels.end()) {
      open_ones.push_back(std::move(reference));
    } else {
      answer(reference, label->second);
    }
  }
  return open_ones;
}

void NameScopes::close() {
  std::vector<LabelReference> open_ones = answer_references();
  scopes_.pop_back();
  std::vector<LabelReference>& outer = scopes_.back().references;
  for (LabelReference& reference : open_ones) outer.push_back(std::move(reference));
}

std::optional<LabelReference> NameScopes::finish() {
  std::vector<LabelReference> open_ones = answer_references();
  if (open_ones.empty()) return std::nullopt;
  return open_ones.front();
}

}  // namespace gemmery::emulator
