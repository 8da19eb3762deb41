// SPDX-License-Identifier: Apache-2.0
// The meaning of names in a function: nested scopes of registers, variables and labels.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "emulator/program/program.hpp"

namespace gemmery::emulator {

// A name that may be a label declared later.
struct LabelReference {
  std::string_view name;
  std::uint32_t line = 0;
  std::uint32_t at = 0;        // the instruction whose operands hold the name, or its index in
  std::string branch_targets;  // this table, if not empty
};

class NameScopes {
 public:
  explicit NameScopes(Function& function) : function_(function) { open(); }

  void open();
  // Resolves references to labels of the scope; the others move to the enclosing scope.
  void close();
  std::size_t depth() const noexcept { return scopes_.size(); }

  // False if the innermost scope has the name already.
  bool declare_register(std::string_view name, RegisterIndex reg);
  // `prefix`0 .. `prefix`(count - 1)
  bool declare_register_range(std::string_view prefix, RegisterIndex first, std::uint32_t count);
  // Returns the variable's name in the function, which is unique there; empty if the scope already
  // has the name.
  std::string declare_variable(std::string_view name);
  // The same for a label of the next instruction or a table of labels.
  std::string declare_label(std::string_view name);

  std::optional<RegisterIndex> find_register(std::string_view name) const;
  const std::string* find_variable(std::string_view name) const;
  void refer_to_label(LabelReference reference) { scopes_.back().references.push_back(reference); }

  // Closes the outermost scope; returns an unresolved reference, if there is one.
  std::optional<LabelReference> finish();

 private:
  struct Range {
    RegisterIndex first = 0;
    std::uint32_t count = 0;
  };
  struct Scope {
    std::uint32_t number = 0;
    std::unordered_map<std::string_view, RegisterIndex> registers;
    std::unordered_map<std::string_view, Range> ranges;
    std::unordered_map<std::string_view, std::string> variables;
    std::unordered_map<std::string_view, std::string> labels;
    std::vector<LabelReference> references;
  };
  std::string unique_name(std::string_view name) const;
  void answer(const LabelReference& reference, const std::string& label);
  std::vector<LabelReference> answer_references();

  Function& function_;
  std::vector<Scope> scopes_;
  std::uint32_t scope_count_ = 0;
};

}  // namespace gemmery::emulator
