// SPDX-License-Identifier: Apache-2.0
// Declarations of variables and parameters: `.align 16 .b8 name[128] = {…}`.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "emulator/program/lexer.hpp"
#include "emulator/program/program.hpp"

namespace gemmery::emulator {

// The state space that a word (".shared") names; nullopt for other words.
std::optional<Space> find_space(std::string_view word) noexcept;

// True if the name, which an initialiser mentions, has been declared.
using IsDeclared = std::function<bool(std::string_view)>;

struct Declarator {
  Variable variable;
  std::string_view name;  // as written; may be "_"
  std::uint32_t element_bytes = 1;
};
// Parses what follows ".shared", ".param" …: attributes, type, name, dimensions.
Declarator parse_declarator(Lexer& lexer, Space space);
// Parses "= …", if present.
void parse_initialiser(Lexer& lexer, Declarator& declarator, const IsDeclared& is_declared);

// Parses the register type after ".reg".
ScalarType parse_type(Lexer& lexer);
std::uint32_t parse_count(Lexer& lexer, std::uint64_t limit);

}  // namespace gemmery::emulator
