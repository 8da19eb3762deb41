// SPDX-License-Identifier: Apache-2.0
// Joins words into problem lines and restores the quotes that the shell removed.
#include "cli/problem_words.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <gemmery/error.hpp>

namespace gemmery::cli {
namespace {

// The operations of the grammar, including those that this version refuses: the refusal is the
// parser's.
constexpr std::array<std::string_view, 3> kinds{"gemm", "grouped_gemm", "scaled_gemm"};

bool begins_problem(std::string_view word) {
  const std::string_view first = word.substr(0, word.find(' '));
  const bool is_convolution =
      first.starts_with("conv") && first.find('=') == std::string_view::npos;
  return is_convolution || std::ranges::find(kinds, first) != kinds.end();
}

std::string quoted(std::string_view value) {
  std::string text = "\"";
  for (const char character : value) {
    if (character == '"' || character == '\\') text += '\\';
    text += character;
  }
  return text + '"';
}

// NAME=a value with spaces -> NAME="a value with spaces". Within a program line ends separate
// statements; elsewhere they separate fields.
std::string as_field(std::string_view word) {
  const std::size_t equals = word.find('=');
  const bool is_program = word.substr(0, equals) == "epilogue";
  const bool has_space =
      word.find_first_of(is_program ? " \t\r\n" : " \t") != std::string_view::npos;
  if (!has_space || equals == std::string_view::npos) return std::string(word);
  const std::string_view value = word.substr(equals + 1);
  if (value.starts_with('"')) return std::string(word);
  return std::string(word.substr(0, equals + 1)) + quoted(value);
}

Error no_problem(std::string got, std::string expected) {
  return Error({.kind = ErrorKind::invalid_argument,
                .operand = "problem",
                .expected = std::move(expected),
                .got = std::move(got),
                .hint = "for example: gemm 1024x1024x1024 a=f32"});
}

}  // namespace

std::vector<std::string> problem_lines(std::span<const std::string> words) {
  std::vector<std::string> lines;
  for (const std::string& word : words) {
    if (begins_problem(word)) {
      lines.push_back(word);
    } else if (lines.empty() && words.size() == 1) {
      lines.push_back(word);  // one word that is no operation: refused by the grammar's parser
    } else if (lines.empty()) {
      throw no_problem("'" + word + "'", "a word that names an operation (gemm)");
    } else {
      lines.back() += " " + as_field(word);
    }
  }
  return lines;
}

std::string only_problem_line(std::span<const std::string> words) {
  const std::vector<std::string> lines = problem_lines(words);
  if (lines.empty()) throw no_problem("none", "one");
  if (lines.size() > 1) throw no_problem(std::to_string(lines.size()), "one");
  return lines.front();
}

}  // namespace gemmery::cli
