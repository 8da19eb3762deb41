// SPDX-License-Identifier: Apache-2.0
// The statements of a function (PTX ISA, "Syntax", "Instruction Operands").
#include "emulator/program/function_parser.hpp"

#include "emulator/program/declarations.hpp"
#include "emulator/program/special_register.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::size_t max_scope_depth = 64;
constexpr int max_operand_depth = 4;      // [map, {…}] and {…, …}: two are in use
constexpr std::size_t max_operands = 64;  // not counting those inside of lists
constexpr std::uint64_t max_line = 0xffff'ffff;
constexpr std::uint64_t warp_size = 32;  // WARP_SZ

Operand make_symbol(std::string_view name) {
  Operand operand;
  operand.kind = Operand::Kind::symbol;
  operand.text = name;
  return operand;
}

Operand make_immediate(std::uint64_t bits) {
  Operand operand;
  operand.kind = Operand::Kind::immediate;
  operand.bits = bits;
  return operand;
}

Operand make_list(std::vector<Operand> items) {
  Operand operand;
  operand.kind = Operand::Kind::list;
  operand.items = std::move(items);
  return operand;
}

// Directives of a body that have no effect here.
bool ends_with_semicolon(std::string_view directive) noexcept {
  return directive == "pragma" || directive == "callprototype" || directive == "calltargets";
}

}  // namespace

FunctionParser::FunctionParser(Lexer& lexer, const ModuleNames& module_names, Function& function,
                               std::uint32_t& register_budget)
    : lexer_(lexer),
      module_names_(module_names),
      function_(function),
      register_budget_(register_budget),
      scopes_(function) {
  for (const auto* list : {&function.parameters, &function.results})
    for (const Variable& variable : *list)
      if (scopes_.declare_variable(variable.name).empty())
        lexer_.fail("a parameter's name once, not " + variable.name + " again");
}

void FunctionParser::parse_body() {
  lexer_.expect('{');
  while (scopes_.depth() > 0) {
    if (lexer_.is_at_end()) lexer_.fail("'}' at the end of " + function_.name);
    if (lexer_.accept('}')) {
      if (scopes_.depth() == 1) break;
      scopes_.close();
    } else if (lexer_.accept('{')) {
      if (scopes_.depth() == max_scope_depth) lexer_.fail("at most 64 scopes inside one another");
      scopes_.open();
    } else {
      parse_statement();
    }
  }
  if (const auto unanswered = scopes_.finish())
    lexer_.fail_at(unanswered->line, "a label, variable or function that is declared",
                   std::string(unanswered->name));
}

void FunctionParser::parse_statement() {
  if (lexer_.accept(';')) return;
  if (lexer_.peek() == '.') return parse_directive(lexer_.take_dotted_word());
  parse_label_or_instruction();
}

void FunctionParser::parse_directive(std::string_view word) {
  if (word == "reg") return parse_registers();
  if (word == "loc") return parse_location();
  if (ends_with_semicolon(word)) {
    lexer_.skip_to(';');
    return lexer_.expect(';');
  }
  const auto space = find_space(word);
  if (!space) lexer_.fail("a directive of a function's body, not \"." + std::string(word) + "\"");
  parse_variables(*space);
}

void FunctionParser::parse_registers() {
  const ScalarType type = parse_type(lexer_);
  do {
    const std::string_view name = lexer_.take_identifier();
    if (lexer_.accept('<')) {
      declare_register_range(name, type);
    } else {
      declare_register(name, type);
    }
  } while (lexer_.accept(','));
  lexer_.expect(';');
}

void FunctionParser::declare_register(std::string_view name, ScalarType type) {
  if (register_budget_ == 0) lexer_.fail("fewer registers");
  --register_budget_;
  if (!scopes_.declare_register(name, static_cast<RegisterIndex>(function_.registers.size())))
    lexer_.fail("a register's name once, not " + std::string(name) + " again");
  function_.registers.push_back({std::string(name), type});
}

void FunctionParser::declare_register_range(std::string_view prefix, ScalarType type) {
  const std::uint32_t count = parse_count(lexer_, register_budget_);
  lexer_.expect('>');
  register_budget_ -= count;
  const auto first = static_cast<RegisterIndex>(function_.registers.size());
  if (!scopes_.declare_register_range(prefix, first, count))
    lexer_.fail("a register's name once, not " + std::string(prefix) + "<…> again");
  for (std::uint32_t number = 0; number < count; ++number)
    function_.registers.push_back({std::string(prefix) + std::to_string(number), type});
}

void FunctionParser::parse_variables(Space space) {
  Declarator declarator = parse_declarator(lexer_, space);
  parse_initialiser(lexer_, declarator, [&](std::string_view name) { return is_variable(name); });
  declarator.variable.name = scopes_.declare_variable(declarator.name);
  if (declarator.variable.name.empty())
    lexer_.fail("a variable's name once, not " + std::string(declarator.name) + " again");
  lexer_.expect(';');
  function_.variables.push_back(std::move(declarator.variable));
}

// .loc file line column [, function_name label [+ n]] [, inlined_at file line column]
void FunctionParser::parse_location() {
  const auto take_place = [this] {
    std::array<std::uint32_t, 3> place{};
    for (std::uint32_t& field : place) field = parse_count(lexer_, max_line);
    return place;
  };
  const std::array<std::uint32_t, 3> place = take_place();
  SourceLine call_site;
  while (lexer_.accept(',')) {
    const std::string_view word = lexer_.take_identifier();
    if (word == "function_name") {
      lexer_.take_identifier();
      if (lexer_.accept('+')) lexer_.take_number();
    } else if (word == "inlined_at") {
      const std::array<std::uint32_t, 3> caller = take_place();
      const auto outer = call_sites_.find(caller);
      call_site = outer != call_sites_.end() ? outer->second
                                             : SourceLine{.file = caller[0], .line = caller[1]};
    } else {
      lexer_.fail("function_name or inlined_at, not " + std::string(word));
    }
  }
  if (place[1] == 0) return;  // the compiler's own code: it belongs to the line before
  source_ = {.file = place[0], .line = place[1]};
  call_site_ = call_site;
  if (call_site_.file != 0)
    call_sites_[place] = call_site_;
  else
    call_sites_.erase(place);
}

void FunctionParser::parse_label_or_instruction() {
  Instruction instruction;
  instruction.ptx_line = lexer_.line();
  instruction.source = source_;
  instruction.call_site = call_site_;
  if (lexer_.accept('@')) {
    parse_guard(instruction);
    return parse_instruction(std::move(instruction), lexer_.take_identifier());
  }
  const std::string_view word = lexer_.take_identifier();
  if (lexer_.accept_label_colon()) return parse_label(word);
  parse_instruction(std::move(instruction), word);
}

void FunctionParser::parse_label(std::string_view name) {
  const std::string unique = scopes_.declare_label(name);
  if (unique.empty()) lexer_.fail("a label's name once, not " + std::string(name) + " again");
  // The name comes from the directive that follows, or from the next instruction.
  const std::string_view word = lexer_.peek() == '.' ? lexer_.take_dotted_word() : "";
  if (word == "branchtargets") return parse_branch_targets(unique);
  function_.labels.emplace(unique, static_cast<std::uint32_t>(function_.code.size()));
  if (!word.empty()) parse_directive(word);
}

void FunctionParser::parse_branch_targets(const std::string& table) {
  std::vector<std::string>& targets = function_.branch_targets[table];
  do {
    const std::uint32_t line = lexer_.line();
    const std::string_view name = lexer_.take_identifier();
    const auto at = static_cast<std::uint32_t>(targets.size());
    scopes_.refer_to_label({.name = name, .line = line, .at = at, .branch_targets = table});
    targets.emplace_back(name);
  } while (lexer_.accept(','));
  lexer_.expect(';');
}

RegisterIndex FunctionParser::require_register(std::string_view name) {
  const auto reg = scopes_.find_register(name);
  if (!reg) lexer_.fail("a register that is declared, not " + std::string(name));
  return *reg;
}

void FunctionParser::parse_guard(Instruction& instruction) {
  instruction.is_guard_negated = lexer_.accept('!');
  const std::string_view name = lexer_.take_identifier();
  instruction.guard = require_register(name);
  if (function_.registers[instruction.guard].type != ScalarType::pred)
    lexer_.fail("a predicate as a guard, not " + std::string(name));
}

void FunctionParser::parse_modifiers(Instruction& instruction) {
  while (lexer_.is_joined_to_dot()) instruction.modifiers.emplace_back(lexer_.take_dotted_word());
}

void FunctionParser::parse_instruction(Instruction instruction, std::string_view first_word) {
  instruction.opcode = first_word;
  parse_modifiers(instruction);
  if (instruction.opcode == "call") {
    parse_call(instruction);
  } else if (lexer_.peek() != ';') {
    do {
      if (instruction.operands.size() == max_operands) lexer_.fail("at most 64 operands");
      instruction.operands.push_back(parse_operand(0));
    } while (lexer_.accept(','));
  }
  lexer_.expect(';');
  function_.code.push_back(std::move(instruction));
}

// call (results), function, (arguments), prototype; empty lists are omitted.
void FunctionParser::parse_call(Instruction& instruction) {
  std::vector<Operand>& operands = instruction.operands;
  operands.push_back(make_list({}));
  if (lexer_.accept('(')) {
    operands[0] = parse_list(')', 0);
    lexer_.expect(',');
  }
  operands.push_back(parse_operand(0));
  operands.push_back(make_list({}));
  if (!lexer_.accept(',')) return;
  if (lexer_.accept('(')) {
    operands[2] = parse_list(')', 0);
    if (!lexer_.accept(',')) return;
  }
  operands.push_back(parse_operand(0));
}

Operand FunctionParser::parse_operand(int depth) {
  if (depth == max_operand_depth) lexer_.fail("fewer lists inside one another");
  if (lexer_.accept('{')) return parse_list('}', depth);
  if (lexer_.accept('[')) return parse_bracketed(depth);
  if (lexer_.accept('(')) {  // around one number: (-1)
    Operand inner = parse_operand(depth + 1);
    lexer_.expect(')');
    return inner;
  }
  if (lexer_.accept('!')) {
    Operand operand = resolve(lexer_.take_identifier());
    if (operand.kind != Operand::Kind::reg) lexer_.fail("a predicate behind '!'");
    operand.is_negated = true;
    return operand;
  }
  const bool is_negative = lexer_.accept('-');
  if (is_negative || lexer_.is_at_number()) return parse_number(is_negative);
  return parse_named_operand();
}

Operand FunctionParser::parse_number(bool is_negative) {
  const Number number = lexer_.take_number();
  Operand operand = make_immediate(number.bits);
  operand.is_float_immediate = number.is_float;
  operand.is_double_immediate = number.is_double;
  if (!is_negative) return operand;
  if (number.is_float) {
    operand.bits ^= std::uint64_t{1} << (number.is_double ? 63 : 31);
  } else {
    operand.bits = ~operand.bits + 1;
  }
  return operand;
}

// name, name + 4, p|q
Operand FunctionParser::parse_named_operand() {
  Operand operand = resolve(lexer_.take_identifier());
  if (lexer_.accept('|')) {
    Operand pair;
    pair.kind = Operand::Kind::predicate_pair;
    pair.items.push_back(std::move(operand));
    pair.items.push_back(resolve(lexer_.take_identifier()));
    return pair;
  }
  if (operand.kind == Operand::Kind::symbol && (lexer_.peek() == '+' || lexer_.peek() == '-')) {
    const bool is_negative = lexer_.accept('-');
    if (!is_negative) lexer_.expect('+');
    const auto offset = static_cast<std::int64_t>(parse_number(is_negative).bits);
    operand.offset = offset;
  }
  return operand;
}

Operand FunctionParser::parse_list(char end, int depth) {
  std::vector<Operand> items;
  if (!lexer_.accept(end)) {
    do {
      items.push_back(parse_operand(depth + 1));
    } while (lexer_.accept(','));
    lexer_.expect(end);
  }
  return make_list(std::move(items));
}

Operand FunctionParser::parse_address_base() {
  Operand address;
  address.kind = Operand::Kind::address;
  bool is_negative = lexer_.accept('-');
  if (!is_negative && !lexer_.is_at_number()) {
    const Operand base = resolve(lexer_.take_identifier());
    if (base.kind != Operand::Kind::reg && base.kind != Operand::Kind::symbol)
      lexer_.fail("a register or a variable as an address");
    address.reg = base.reg;
    address.text = base.text;
    is_negative = lexer_.accept('-');
    if (!is_negative && !lexer_.accept('+')) return address;
    is_negative ^= lexer_.accept('-');  // [%rd1+-16]
  }
  const Operand offset = parse_number(is_negative);
  if (offset.is_float_immediate) lexer_.fail("a whole number as an offset");
  address.offset = static_cast<std::int64_t>(offset.bits);
  return address;
}

// [base + offset], or [map, {coordinates}, …]
Operand FunctionParser::parse_bracketed(int depth) {
  Operand address = parse_address_base();
  if (lexer_.accept(']')) return address;
  Operand tensor;
  tensor.kind = Operand::Kind::tensor;
  tensor.items.push_back(std::move(address));
  while (lexer_.accept(',')) tensor.items.push_back(parse_operand(depth + 1));
  lexer_.expect(']');
  return tensor;
}

bool FunctionParser::is_variable(std::string_view name) const {
  return scopes_.find_variable(name) != nullptr || module_names_.contains(name);
}

Operand FunctionParser::resolve(std::string_view name) {
  Operand operand;
  if (name == "_") return operand;
  if (const auto reg = scopes_.find_register(name)) {
    operand.kind = Operand::Kind::reg;
    operand.reg = *reg;
    return operand;
  }
  if (const std::string* variable = scopes_.find_variable(name)) return make_symbol(*variable);
  if (module_names_.contains(name)) return make_symbol(name);
  if (name == "WARP_SZ") return make_immediate(warp_size);
  if (find_special_register(name)) {
    operand = make_symbol(name);
    operand.kind = Operand::Kind::special;
    return operand;
  }
  if (name[0] == '%') lexer_.fail("a register that is declared, not " + std::string(name));
  scopes_.refer_to_label({.name = name,
                          .line = lexer_.line(),
                          .at = static_cast<std::uint32_t>(function_.code.size()),
                          .branch_targets = {}});
  return make_symbol(name);
}

}  // namespace gemmery::emulator
