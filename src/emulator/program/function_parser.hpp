// SPDX-License-Identifier: Apache-2.0
// The body of a function: declarations, labels, instructions, scopes.
#pragma once

#include <array>
#include <map>

#include <string_view>
#include <unordered_set>

#include "emulator/program/lexer.hpp"
#include "emulator/program/name_scopes.hpp"
#include "emulator/program/program.hpp"

namespace gemmery::emulator {

// Names of the module's variables and functions that were declared so far.
using ModuleNames = std::unordered_set<std::string_view>;

class FunctionParser {
 public:
  // `register_budget` is the number of registers that the rest of the module may declare.
  FunctionParser(Lexer& lexer, const ModuleNames& module_names, Function& function,
                 std::uint32_t& register_budget);

  // Parses from '{' to the matching '}'.
  void parse_body();

 private:
  void parse_statement();
  void parse_directive(std::string_view word);
  void parse_registers();
  void declare_register(std::string_view name, ScalarType type);
  void declare_register_range(std::string_view prefix, ScalarType type);
  void parse_variables(Space space);
  void parse_location();
  void parse_label_or_instruction();
  void parse_label(std::string_view name);
  void parse_branch_targets(const std::string& table);
  void parse_guard(Instruction& instruction);
  void parse_instruction(Instruction instruction, std::string_view first_word);
  void parse_modifiers(Instruction& instruction);
  void parse_call(Instruction& instruction);

  Operand parse_operand(int depth);
  Operand parse_named_operand();
  Operand parse_number(bool is_negative);
  Operand parse_list(char end, int depth);
  Operand parse_bracketed(int depth);
  Operand parse_address_base();
  Operand resolve(std::string_view name);
  bool is_variable(std::string_view name) const;
  RegisterIndex require_register(std::string_view name);

  Lexer& lexer_;
  const ModuleNames& module_names_;
  Function& function_;
  std::uint32_t& register_budget_;
  NameScopes scopes_;
  SourceLine source_;
  SourceLine call_site_;
  // Maps the (file, line, column) of a call that was itself inlined to the call site in the
  // outermost caller.
  std::map<std::array<std::uint32_t, 3>, SourceLine> call_sites_;
};

}  // namespace gemmery::emulator
