// SPDX-License-Identifier: Apache-2.0
// Parses text into expressions. docs/epilogues.md has the grammar.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <gemmery/epilogue.hpp>

#include "epilogue/lexer.hpp"

namespace gemmery::epilogue {

// The results of a program: statements, a Python function or a lambda. Throws Error
// (invalid_argument, unsupported for what is too large) with line, column, word and hint.
std::vector<Result> parse_program(std::string_view text);
// The same of a text's tokens, which need not begin with a statement.
std::vector<Result> parse_program(std::vector<Token> tokens);

// One expression of the named operands.
Expression parse_expression(std::string_view text, std::span<const std::string_view> operands);

// True for keywords that begin a statement of Python other than an assignment; no result has such a
// name.
bool begins_no_assignment(std::string_view word) noexcept;

// sum, max, min, amax
std::optional<Reduction> find_reduction(std::string_view name) noexcept;

}  // namespace gemmery::epilogue
