// SPDX-License-Identifier: Apache-2.0
#include "operation/grammar_programs.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "epilogue/expression_parser.hpp"
#include "epilogue/operand_program.hpp"
#include "operation/grammar_operands.hpp"
#include "operation/operand_programs.hpp"

namespace gemmery::grammar {
namespace {

using operation::EpilogueMatrix;
using operation::product_operand;

std::string_view key_of(const Word& word) {
  return std::string_view(word.text).substr(0, word.text.find('='));
}
std::string_view value_of(const Word& word) {
  const std::size_t equals = word.text.find('=');
  return equals == std::string::npos ? std::string_view{}
                                     : std::string_view(word.text).substr(equals + 1);
}

bool has_name(const epilogue::Program& program, std::string_view name) {
  return std::ranges::find(program.inputs(), name) != program.inputs().end();
}

// Names of the line's own fields, which operands of programs have only with a prefix.
bool is_reserved(std::string_view key) {
  constexpr std::array<std::string_view, 10> own{"a",   "b",        "c",     "C",    "out",
                                                 "acc", "epilogue", "alpha", "beta", "math"};
  return std::ranges::find(own, key) != own.end();
}

void read_program(const Word& word, bool is_a, ProgramWords& program) {
  if (program.word) refuse(word, "each field once");
  program.word = word;
  program.program = read_operand_program(value_of(word), product_operand(is_a));
}

void add_binding(const Word& word, std::string_view name, ProgramWords& program) {
  if (std::ranges::find(program.bindings, name, &BoundName::name) != program.bindings.end())
    refuse(word, "each field once");
  program.bindings.push_back({std::string(name), word, std::string(value_of(word))});
}

// --- dims ---------------------------------------------------------------------------------------

// The letters of rows and columns of an operand, which are m and n in tensors of epilogues.
struct Letters {
  char rows, columns;
};
constexpr Letters letters_of(bool is_a) noexcept {
  return is_a ? Letters{'m', 'k'} : Letters{'k', 'n'};
}

// The part of a text within its first brackets, with letters exchanged.
std::string exchange(std::string text, const Letters& from, const Letters& to) {
  const std::size_t begin = text.find('[');
  const std::size_t end = text.find(']');
  if (begin == std::string::npos || end == std::string::npos) return text;
  for (std::size_t at = begin; at < end; ++at) {
    if (text[at] == from.rows)
      text[at] = to.rows;
    else if (text[at] == from.columns)
      text[at] = to.columns;
  }
  return text;
}

constexpr Letters letters_of_out{'m', 'n'};

void check_dims(const BoundName& bound, bool is_a) {
  const std::size_t begin = bound.value.find('[');
  const std::size_t end = bound.value.find(']');
  if (begin == std::string::npos || end == std::string::npos) return;
  std::string_view dims = std::string_view(bound.value).substr(begin + 1, end - begin - 1);
  if (dims.starts_with("l,")) dims.remove_prefix(2);
  const Letters own = letters_of(is_a);
  const std::string rows(1, own.rows), columns(1, own.columns);
  if (dims == rows || dims == columns || dims == "1" || dims == rows + ',' + columns) return;
  refuse(bound.word, fmt::format("[{0}], [{1}], [1], [{0},{1}], or the same with l, as in [l,{1}]",
                                 own.rows, own.columns));
}

EpilogueMatrix read_matrix_of(const BoundName& bound, bool is_a, const GemmProblem& problem) {
  check_dims(bound, is_a);
  const OperandWords words = read_operand(bound.word, Role::epilogue,
                                          exchange(bound.value, letters_of(is_a), letters_of_out));
  if (words.has_pointers)
    refuse(bound.word, "batch= for tensors of an operand's program", {}, ErrorKind::unsupported);
  if (words.alignment) refuse(bound.word, "no align=: elements are read one after the other");
  const bool varies = words.dims && words.dims->starts_with('l');
  MatrixType with_batch;
  with_batch.batch_stride = varies || !problem.groups ? 1 : 0;
  return {.name = bound.name,
          .type = read_matrix(words, operation::program_extents(problem, is_a, with_batch))};
}

std::string matrix_text_of(MatrixType matrix, bool is_a, const GemmProblem& problem) {
  matrix.alignment = operation::alignment_of(0, matrix);
  matrix = operation::settle_alignment(matrix);
  const MatrixExtents extents = operation::program_extents(problem, is_a, matrix);
  MatrixType once;
  const bool names_batch = problem.groups && matrix.batch_stride != 0 &&
                           operation::program_extents(problem, is_a, once).batch != problem.l;
  return exchange(matrix_text(matrix, extents, Role::epilogue, names_batch), letters_of_out,
                  letters_of(is_a));
}

// --- one operand --------------------------------------------------------------------------------

const BoundName& require_binding(const Word& kind, const ProgramWords& words,
                                 const std::string& name, bool is_a) {
  const auto found = std::ranges::find(words.bindings, name, &BoundName::name);
  if (found != words.bindings.end()) return *found;
  refuse_missing(kind, fmt::format("a field {}= for what {} calls {}",
                                   operation::program_operand_name(is_a, name),
                                   is_a ? "program_a" : "program_b", name));
}

void apply_program(const Word& kind, const ProgramWords& words, bool is_a, GemmProblem& problem,
                   std::vector<double>& numbers) {
  if (!words.program) return;
  std::vector<EpilogueMatrix> inputs;
  for (const std::string& name : words.program->inputs()) {
    const BoundName& bound = require_binding(kind, words, name, is_a);
    const std::optional<double> number = read_scalar(bound.word, bound.value);
    if (number) numbers.push_back(*number);
    inputs.push_back(number ? EpilogueMatrix{.name = name, .is_number = true}
                            : read_matrix_of(bound, is_a, problem));
  }
  (is_a ? problem.a_companions : problem.b_companions).program =
      operation::describe_program(*words.program, is_a, inputs);
}

std::string program_text(const GemmProblem& problem, bool is_a,
                         const std::vector<double>& numbers) {
  const auto& program = operation::program_of(problem, is_a);
  if (!program) return {};
  const EpilogueRules& rules = rules_of(program->id);
  std::string text = is_a ? " program_a=" : " program_b=";
  text += in_quotes(operand_program_text(rules.program, product_operand(is_a)));
  std::size_t number = 0;
  for (std::size_t i = 0; i < rules.operands.size(); ++i) {
    text += ' ' + operation::program_operand_name(is_a, rules.operands[i].name) + '=';
    if (!rules.operands[i].is_number)
      text += matrix_text_of(program->operands[i], is_a, problem);
    else
      text += number_text(problem, number < numbers.size() ? numbers[number++] : 1);
  }
  return text;
}

}  // namespace

bool is_program_field(std::string_view key) noexcept {
  return key == "program_a" || key == "program_b" || key.starts_with("a.") || key.starts_with("b.");
}

ProgramsWords read_operand_programs(const std::vector<Word>& words) {
  ProgramsWords programs;
  for (const Word& word : words) {
    if (key_of(word) == "program_a") read_program(word, true, programs.a);
    if (key_of(word) == "program_b") read_program(word, false, programs.b);
  }
  return programs;
}

bool take_operand_binding(const Word& word, const epilogue::Program* epilogue,
                          ProgramsWords& programs) {
  const std::string_view key = key_of(word);
  if (key == "program_a" || key == "program_b") return true;
  for (const bool is_a : {true, false}) {
    if (!key.starts_with(is_a ? "a." : "b.")) continue;
    ProgramWords& own = is_a ? programs.a : programs.b;
    const std::string_view name = key.substr(2);
    if (!own.program || !has_name(*own.program, name))
      refuse(word,
             own.program ? fmt::format("a name of {}", is_a ? "program_a" : "program_b")
                         : fmt::format("a field {}=", is_a ? "program_a" : "program_b"),
             own.program ? epilogue::suggest(name, own.program->inputs()) : "");
    add_binding(word, name, own);
    return true;
  }
  if (is_reserved(key)) return false;
  const bool is_of_a = programs.a.program && has_name(*programs.a.program, key);
  const bool is_of_b = programs.b.program && has_name(*programs.b.program, key);
  if (!is_of_a && !is_of_b) return false;
  const bool is_of_epilogue = epilogue != nullptr && has_name(*epilogue, key);
  if ((is_of_a && is_of_b) || is_of_epilogue)
    refuse(word, "a prefix where several programs have a name",
           fmt::format("a.{0}=, b.{0}= or epilogue.{0}=", key));
  add_binding(word, key, is_of_a ? programs.a : programs.b);
  return true;
}

void apply_programs(const Word& kind, const ProgramsWords& words, ProblemLine& line) {
  apply_program(kind, words.a, true, line.problem, line.a_numbers);
  apply_program(kind, words.b, false, line.problem, line.b_numbers);
}

std::string programs_text(const ProblemLine& line) {
  return program_text(line.problem, true, line.a_numbers) +
         program_text(line.problem, false, line.b_numbers);
}

bool is_program_operand(const GemmProblem& problem, std::string_view name) {
  const auto is_of = [&](bool is_a) {
    const auto& program = operation::program_of(problem, is_a);
    return program && has_name(rules_of(program->id).program, name);
  };
  return is_of(true) || is_of(false);
}

// --- numbers ------------------------------------------------------------------------------------

double read_number(const Word& word, std::string_view text) {
  double value = 0;
  const auto [after, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || after != text.data() + text.size()) refuse(word, "a number");
  return value;
}

std::optional<double> read_scalar(const Word& word, std::string_view value) {
  constexpr std::string_view suffix = ":scalar";
  if (value.ends_with(suffix)) {
    bool names_tf32 = false;
    read_dtype(word, value.substr(0, value.size() - suffix.size()), names_tf32);
    return 1;
  }
  double number = 0;  // "inf" and "nan" in letters of either case are numbers
  const char* const last = value.data() + value.size();
  const bool begins_a_number =
      !value.empty() && (std::isdigit(static_cast<unsigned char>(value[0])) != 0 ||
                         value[0] == '-' || value[0] == '.');
  if (!begins_a_number && std::from_chars(value.data(), last, number).ptr != last)
    return std::nullopt;
  return read_number(word, value);
}

std::string number_text(const GemmProblem& problem, double value) {
  if (value != 1) return fmt::format("{}", value);
  return fmt::format("{}:scalar", alias(epilogue_compute_type(problem.accumulator)));
}

}  // namespace gemmery::grammar
