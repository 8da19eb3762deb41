// SPDX-License-Identifier: Apache-2.0
// Joins words into problem lines and restores the quotes that the shell removed.
#include "cli/problem_words.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include <gemmery/error.hpp>

#include "cli/output.hpp"
#include "cli/suggestion.hpp"

namespace gemmery::cli {
namespace {

// The operations of the grammar, including those that this version does not support: the parser
// reports these.
constexpr std::array<std::string_view, 3> kinds{"gemm", "grouped_gemm", "scaled_gemm"};
// Those that a mistyped word is compared with.
const std::vector<std::string> suggested_kinds{"gemm", "grouped_gemm", "conv2d_fprop",
                                               "conv2d_dgrad", "conv2d_wgrad"};

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

// NAME=a value with spaces -> NAME="a value with spaces". Line breaks separate the statements of a
// program; elsewhere they separate fields.
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

Error no_problem(std::string got, std::string expected, std::string question = "") {
  return Error({.kind = ErrorKind::invalid_argument,
                .operand = "problem",
                .expected = std::move(expected),
                .got = std::move(got),
                .hint = question + (question.empty() ? "" : " ") +
                        "for example: gemm 1024x1024x1024 a=f32"});
}

// Names of epilogue operands that are row vectors in most programs.
constexpr std::array<std::string_view, 3> vector_names{"bias", "scale", "gamma"};

// Whether the field has a vector's name and no dims: "bias=f32".
bool is_vector_without_dims(std::string_view field) {
  const std::size_t equals = field.find('=');
  return equals != std::string_view::npos && field.find('[') == std::string_view::npos &&
         std::ranges::find(vector_names, field.substr(0, equals)) != vector_names.end();
}

// The line without its quoted parts.
std::string without_programs(std::string_view line) {
  std::string outside;
  bool is_inside = false;
  for (const char character : line) {
    if (character == '"') is_inside = !is_inside;
    if (!is_inside && character != '"') outside += character;
  }
  return outside;
}

// True for what the epilogue's program computes.
bool is_result(std::string_view name, EpilogueId epilogue) {
  if (epilogue == default_epilogue) return false;
  return std::ranges::any_of(rules_of(epilogue).operands, [&](const EpilogueOperandRule& rule) {
    return rule.is_output && rule.name == name;
  });
}

}  // namespace

std::vector<std::string> problem_lines(std::span<const std::string> words) {
  std::vector<std::string> lines;
  for (const std::string& word : words) {
    if (begins_problem(word)) {
      lines.push_back(word);
    } else if (lines.empty() && words.size() == 1) {
      lines.push_back(word);  // not an operation: the grammar's parser reports it
    } else if (lines.empty()) {
      throw no_problem("'" + word + "'", "a word that names an operation (gemm)",
                       did_you_mean(closest_word(word, suggested_kinds)));
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

std::string vector_note(std::string_view line, const GemmProblem& problem) {
  if (problem.convolution) return {};  // its dims have other names
  std::istringstream fields(without_programs(line));
  for (std::string field; fields >> field;) {
    const std::string_view name = std::string_view(field).substr(0, field.find('='));
    if (!is_vector_without_dims(field) || is_result(name, problem.epilogue)) continue;
    const std::size_t end = std::min(field.find('/'), field.size());
    return "note: " + field + " is a whole matrix, M x N; one value for each column is " +
           field.substr(0, end) + "[n]" + field.substr(end) + ", for each row [m], one for all [1]";
  }
  return {};
}

ProblemLine read_problem(std::span<const std::string> words) {
  const std::string line = only_problem_line(words);
  ProblemLine problem = parse_problem(line);
  if (const std::string note = vector_note(line, problem.problem); !note.empty()) tell_note(note);
  return problem;
}

}  // namespace gemmery::cli
