// SPDX-License-Identifier: Apache-2.0
// Converts the words of a command line to problem lines. The shell has removed quotes, so each word
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

// Parses that problem. Prints a note on standard error for each matrix that was probably meant to
// be a vector.
ProblemLine read_problem(std::span<const std::string> words);

// "note: bias=f32 is a whole matrix, …" if an operand of the problem that the line spells has a
// vector's name and no dims, else "". Results are as large as their programs say.
std::string vector_note(std::string_view line, const GemmProblem& problem);

}  // namespace gemmery::cli
