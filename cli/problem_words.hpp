// SPDX-License-Identifier: Apache-2.0
// From the words of a command line to problem lines: the shell has handled the quotes, so each word
// is one field.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace gemmery::cli {

// One line of the problem grammar per problem. A problem begins with a word that names an operation
// ("gemm"), or is one word that holds the whole line. Throws Error (invalid_argument) for words
// before the first problem.
std::vector<std::string> problem_lines(std::span<const std::string> words);

// The same if there must be exactly one problem.
std::string only_problem_line(std::span<const std::string> words);

}  // namespace gemmery::cli
