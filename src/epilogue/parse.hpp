// SPDX-License-Identifier: Apache-2.0
// Text to expressions. The grammar stands in docs/epilogues.md.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <gemmery/epilogue.hpp>

namespace gemmery::epilogue {

// The results of a program: statements, a Python function or a lambda. Throws Error
// (invalid_argument, unsupported for what is too large) with line, column, word and hint.
std::vector<Result> parse_program(std::string_view text);

// One expression of the operands that are named.
Expression parse_expression(std::string_view text, std::span<const std::string_view> operands);

// Words with which a statement of Python begins that is no assignment: no result is called so.
bool begins_no_assignment(std::string_view word) noexcept;

// sum, max, min, amax
std::optional<Reduction> find_reduction(std::string_view name) noexcept;

}  // namespace gemmery::epilogue
