// SPDX-License-Identifier: Apache-2.0
// From the words of a command line to problem lines: the shell has handled the quotes, so each word
// is one field.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gemmery/problem.hpp>

namespace gemmery::cli {

// One line of the problem grammar per problem. A problem begins with a word that names an operation
// ("gemm"), or is one word that holds the whole line. Throws Error (invalid_argument) for words
// before the first problem.
std::vector<std::string> problem_lines(std::span<const std::string> words);

// The same if there must be exactly one problem.
std::string only_problem_line(std::span<const std::string> words);

// That problem. Notes on standard error say where a line means a matrix and probably a vector was
// meant.
ProblemLine read_problem(std::span<const std::string> words);

// "note: bias=f32 is a whole matrix, …" for an operand with a vector's name and no dims; ""
// without.
std::string vector_note(std::string_view line);

}  // namespace gemmery::cli
