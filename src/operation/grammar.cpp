// SPDX-License-Identifier: Apache-2.0
// The line that spells a problem: its fields, parsing and printing. docs/problems.md has the
// grammar.
#include <gemmery/error.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/tensor.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "epilogue/expression_parser.hpp"
#include "epilogue/graph.hpp"
#include "operation/block_results.hpp"
#include "operation/companions.hpp"
#include "operation/epilogue_operands.hpp"
#include "operation/grammar_conv.hpp"
#include "operation/grammar_groups.hpp"
#include "operation/grammar_operands.hpp"
#include "operation/grammar_programs.hpp"
#include "operation/grammar_scales.hpp"
#include "operation/grammar_words.hpp"
#include "operation/groups.hpp"
#include "operation/integer_results.hpp"
#include "operation/operand_programs.hpp"
#include "operation/overlap.hpp"
#include "operation/scaled_sums.hpp"
#include "operation/types.hpp"

namespace gemmery {
namespace {

using grammar::addend_text;
using grammar::as_listed;
using grammar::in_quotes;
using grammar::matrix_text;
using grammar::number_text;
using grammar::OperandWords;
using grammar::packed_operand;
using grammar::read_addend;
using grammar::read_dtype;
using grammar::read_integer;
using grammar::read_matrix;
using grammar::read_number;
using grammar::read_operand;
using grammar::read_scalar;
using grammar::refuse;
using grammar::refuse_missing;
using grammar::Role;
using grammar::split;
using grammar::split_words;
using grammar::without_pointers;
using grammar::Word;
using operation::EpilogueMatrix;
using operation::MatrixExtents;

// --- shape --------------------------------------------------------------------------------------

void read_extents(const Word& word, bool is_grouped, GemmProblem& problem) {
  const auto parts = split(word.text, 'x');
  if (is_grouped && parts.size() != 3)
    refuse(word, "MxNxK, of all groups together along the extent that differs",
           "groups= is the number of groups");
  if (parts.size() != 3 && parts.size() != 4)
    refuse(word, "MxNxK or MxNxKxL", "for example 4096x4096x8192");
  const std::array targets{&problem.m, &problem.n, &problem.k, &problem.l};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto extent = read_integer(parts[i]);
    if (!extent || *extent < 0 || *extent > INT32_MAX) refuse(word, "extents from 0 to 2147483647");
    *targets[i] = *extent;
  }
}

// --- the line -----------------------------------------------------------------------------------

using Binding = grammar::BoundName;  // of the epilogue

// The fields of a line as text.
struct Fields {
  std::optional<OperandWords> a, b, out, c;
  std::optional<DType> accumulator;
  std::optional<Math> math;
  std::optional<double> alpha, beta;
  bool is_grouped = false;
  grammar::GroupWords groups;
  grammar::ConvWords convolution;
  grammar::ScaleWords scales;
  grammar::ProgramsWords programs;
  std::optional<epilogue::Program> program;  // if the line has a program
  bool is_default = false;        // the stored part is the default program, bound by GemmOptions
  std::vector<Binding> bindings;  // of other programs

  bool has_program() const { return program.has_value() && !is_default; }
  bool is_convolution() const { return convolution.name.has_value(); }
  Role role() const { return is_convolution() ? Role::tensor : Role::matrix; }
};

// Names reserved for the line's own fields; an operand of an epilogue with such a name has a
// prefix.
bool is_field_name(std::string_view name, bool is_grouped, bool is_convolution) {
  return name == "a" || name == "b" || name == "out" || name == "acc" || name == "math" ||
         name == "epilogue" || grammar::is_scale_field(name) || grammar::is_program_field(name) ||
         (is_grouped && grammar::is_group_field(name)) ||
         (is_convolution && grammar::is_conv_field(name));
}

template <class Field, class Value>
void set_once(const Word& word, std::optional<Field>& field, Value&& value) {
  if (field) refuse(word, "each field once");
  field = std::forward<Value>(value);
}

struct Field {
  std::string_view key, value;
};
Field cut_field(const Word& word) {
  const std::size_t equals = word.text.find('=');
  if (equals == std::string::npos) refuse(word, "NAME=value");
  const std::string_view text = word.text;
  return {text.substr(0, equals), text.substr(equals + 1)};
}

constexpr std::string_view epilogue_prefix = "epilogue.";

Binding read_binding(const Word& word) {
  const auto [key, value] = cut_field(word);
  const bool has_prefix = key.starts_with(epilogue_prefix);
  return {std::string(has_prefix ? key.substr(epilogue_prefix.size()) : key), word,
          std::string(value)};
}

// True if alpha and beta of the default program, where they are bound, are bound to numbers and C
// to a tensor, as GemmOptions bind them. Otherwise it is a program like any other.
bool are_of_gemm_options(const std::vector<Binding>& bindings) {
  return std::ranges::none_of(bindings, [](const Binding& binding) {
    const bool is_factor = binding.name == "alpha" || binding.name == "beta";
    return (is_factor || binding.name == "C") &&
           read_scalar(binding.word, binding.value).has_value() != is_factor;
  });
}

std::vector<std::string> results_beside_d(const epilogue::Program& program) {
  std::vector<std::string> names = program.outputs();
  names.erase(names.begin());
  return names;
}

// The program without the results to which nothing is bound.
epilogue::Program stored_program(const epilogue::Program& program,
                                 const std::vector<Binding>& bindings) {
  std::vector<std::string> stored;
  for (const std::string& name : results_beside_d(program))
    if (std::ranges::find(bindings, name, &Binding::name) != bindings.end()) stored.push_back(name);
  return epilogue::keep_results(program, stored);
}

// Read before the other fields: the program decides what their names mean.
void read_program(const std::vector<Word>& words, Fields& fields) {
  const auto is_program = [](const Word& word) { return cut_field(word).key == "epilogue"; };
  const auto found = std::find_if(words.begin() + 2, words.end(), is_program);
  if (found == words.end()) return;
  const auto again = std::find_if(found + 1, words.end(), is_program);
  if (again != words.end()) refuse(*again, "each field once");
  fields.program.emplace(cut_field(*found).value);
  std::vector<Binding> bindings;
  for (auto word = words.begin() + 2; word != words.end(); ++word)
    if (!is_field_name(cut_field(*word).key, fields.is_grouped, fields.is_convolution()))
      bindings.push_back(read_binding(*word));
  fields.is_default = stored_program(*fields.program, bindings) == epilogue::linear_combination() &&
                      are_of_gemm_options(bindings);
}

// Reads a field of the default program when it is given as a text, in which C and numbers are bound
// like operands of any program. Operands that only unstored results read are left out.
bool read_linear_combination(const Word& word, const Field& field, Fields& fields) {
  const bool has_text = fields.program.has_value();
  const Binding binding = has_text ? read_binding(word) : Binding{std::string(field.key), word, {}};
  const auto number = [&] {
    return has_text ? read_scalar(binding.word, binding.value).value()
                    : read_number(word, field.value);
  };
  const std::string& key = binding.name;
  if (key == "c" || (key == "C" && has_text))
    return set_once(word, fields.c, read_operand(word, Role::addend, field.value)), true;
  if (key == "alpha") return set_once(word, fields.alpha, number()), true;
  if (key == "beta") return set_once(word, fields.beta, number()), true;
  if (!has_text ||
      std::ranges::find(fields.program->inputs(), key) == fields.program->inputs().end())
    return false;
  if (!read_scalar(binding.word, binding.value)) read_operand(word, Role::epilogue, field.value);
  return true;
}

void add_binding(const Word& word, Fields& fields) {
  Binding binding = read_binding(word);
  for (const Binding& other : fields.bindings)
    if (other.name == binding.name) refuse(word, "each field once");
  fields.bindings.push_back(std::move(binding));
}

void read_field(const Word& word, Fields& fields) {
  const Field field = cut_field(word);
  const auto [key, value] = field;
  if (key == "epilogue") return;
  if (key == "a") return set_once(word, fields.a, read_operand(word, fields.role(), value));
  if (key == "b") return set_once(word, fields.b, read_operand(word, fields.role(), value));
  if (key == "out") return set_once(word, fields.out, read_operand(word, fields.role(), value));
  if (key == "acc") {
    const auto dtype = parse_dtype(value);
    if (!dtype) refuse(word, "an accumulator type: f32, f64, f16 or s32");
    return set_once(word, fields.accumulator, *dtype);
  }
  if (key == "math") {
    const auto math = parse_math(value);
    if (!math)
      refuse(word,
             "native, tf32, tf32x3, bf16x3, bf16x6, bf16x9, f16x3, f16, bf16, fp8_fast, "
             "fp8_promoted or saturate");
    return set_once(word, fields.math, *math);
  }
  if (fields.is_grouped && grammar::is_group_field(key))
    return grammar::read_group_field(word, key, value, fields.groups);
  if (grammar::is_scale_field(key))
    return grammar::read_scale_field(word, key, value, fields.scales);
  if (fields.is_convolution() && grammar::is_conv_field(key))
    return grammar::read_conv_field(word, key, value, fields.convolution);
  if (grammar::take_operand_binding(word, fields.program ? &*fields.program : nullptr,
                                    fields.programs))
    return;
  if (fields.has_program()) return add_binding(word, fields);
  if (read_linear_combination(word, field, fields)) return;
  refuse(word,
         std::string(fields.is_grouped         ? grammar::group_fields
                     : fields.is_convolution() ? grammar::conv_fields
                                               : "") +
             "a=, b=, out=, c=, acc=, math=, epilogue=, alpha= or beta=",
         "operands of an epilogue's text need an epilogue that names them");
}

// --- the epilogue -------------------------------------------------------------------------------

std::string list_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

const Binding& require_binding(const Word& kind, const Fields& fields, const std::string& name) {
  const auto found = std::ranges::find(fields.bindings, name, &Binding::name);
  if (found != fields.bindings.end()) return *found;
  const std::array<std::string, 1> accumulator{"accum"};
  refuse_missing(kind,
                 fmt::format("a field {}= for what the epilogue calls {}",
                             is_field_name(name, fields.is_grouped, fields.is_convolution())
                                 ? std::string(epilogue_prefix) + name
                                 : name,
                             name),
                 epilogue::suggest(name, accumulator));
}

// The names include those that only unstored results read, as in arguments.
void check_bindings(const Fields& fields) {
  std::vector<std::string> names = fields.program->inputs();
  for (std::string& name : results_beside_d(*fields.program)) names.push_back(std::move(name));
  for (const Binding& binding : fields.bindings) {
    if (std::ranges::find(names, binding.name) != names.end()) continue;
    refuse(binding.word,
           names.empty() ? "no field more: the epilogue reads nothing but accum and stores only D"
                         : "a name of the epilogue: " + list_names(names),
           epilogue::suggest(binding.name, names));
  }
}

// Binds the program's inputs and results, in its order.
void bind_epilogue(const Word& kind, const Fields& fields, ProblemLine& line) {
  GemmProblem& problem = line.problem;
  const MatrixExtents extents = operation::product_extents(problem).out;
  const epilogue::Program program = stored_program(*fields.program, fields.bindings);
  std::vector<std::string> names = program.inputs();
  const std::size_t results = names.size();
  operation::check_block_form(program, problem);
  for (std::string& name : results_beside_d(program)) names.push_back(std::move(name));
  check_bindings(fields);
  std::vector<EpilogueMatrix> matrices;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Binding& binding = require_binding(kind, fields, names[i]);
    const std::optional<double> number = read_scalar(binding.word, binding.value);
    if (number && i >= results) refuse(binding.word, "a tensor to store a result to");
    if (number) line.numbers.push_back(*number);
    matrices.push_back(number
                           ? EpilogueMatrix{.name = names[i], .is_number = true}
                           : grammar::read_epilogue_tensor({names[i], binding.word, binding.value},
                                                           program, matrices, problem));
  }
  operation::DescribedEpilogue described =
      operation::describe_epilogue(program, matrices, extents, operation::ragged_of_out(problem));
  problem.epilogue = described.id;
  problem.epilogue_operands = std::move(described.operands);
}

// --- assembling ---------------------------------------------------------------------------------

// A problem is refused if arguments like it would be.
void check_types(const GemmProblem& problem) {
  operation::check_operand_type("A", problem.a.dtype);
  operation::check_operand_type("B", problem.b.dtype);
  operation::check_operand_type("out", problem.out.dtype);
  if (problem.c) operation::check_operand_type("C", problem.c->dtype);
  operation::check_product_types(problem);
}

// An out whose elements share memory is refused, as in arguments.
void check_out(const Word& word, const GemmProblem& problem) {
  const MatrixExtents extents = operation::product_extents(problem).out;
  if (operation::has_self_overlap(
          operation::make_view(nullptr, problem.out, extents, Device::cpu())))
    refuse(word, "strides of out under which no two elements share memory");
}

ProblemLine assemble(const Word& kind, GemmProblem given, const Fields& fields) {
  ProblemLine line{.problem = std::move(given)};
  GemmProblem& problem = line.problem;
  if (!fields.a) refuse_missing(kind, "a field a= with A's element type");
  const OperandWords b = fields.b.value_or(packed_operand(Role::matrix, fields.a->dtype));
  const OperandWords out = fields.out.value_or(packed_operand(Role::matrix, fields.a->dtype));
  if (fields.is_grouped) grammar::apply_groups(kind, fields.groups, problem);
  if (fields.is_convolution()) {
    grammar::apply_operands({*fields.a, b, out}, problem);
  } else {
    const operation::ProductExtents extents = operation::product_extents(problem);
    problem.a = read_matrix(as_listed(*fields.a, problem), extents.a);
    problem.b = read_matrix(as_listed(b, problem), extents.b);
    problem.out = read_matrix(as_listed(out, problem), extents.out);
  }
  const double beta = fields.beta.value_or(0);
  if (beta != 0 && !fields.c) refuse_missing(kind, "a field c= where beta is not 0");
  if (fields.c) problem.c = read_addend(as_listed(*fields.c, problem), problem);
  grammar::apply_scales(fields.scales, problem);
  line.alpha = fields.alpha.value_or(1);
  line.beta = beta;
  grammar::apply_programs(kind, fields.programs, line);
  problem.accumulator = fields.accumulator.value_or(default_accumulator(problem));
  const bool names_tf32 = fields.a->names_tf32 || b.names_tf32;
  if (names_tf32 && fields.math && *fields.math != Math::tf32)
    refuse(fields.a->word, "math=tf32 with operands called tf32");
  problem.math = names_tf32 ? Math::tf32 : fields.math.value_or(Math::native);
  check_types(problem);
  if (fields.out) check_out(fields.out->word, problem);
  if (fields.has_program()) bind_epilogue(kind, fields, line);
  operation::check_integer_results(line.problem);
  operation::check_packed_operands(line.problem);
  operation::check_companions(line.problem);
  operation::check_scale_words(line.problem);
  if (line.problem.groups) operation::check_groups(line.problem);
  // Names of kernels with scales in the epilogue have the digest of a program, which is known now.
  static_cast<void>(operation::with_scaled_sums(line.problem));
  return line;
}

// --- printing -----------------------------------------------------------------------------------

// The program, then its operands in order.
std::string epilogue_text(const ProblemLine& line) {
  const GemmProblem& problem = line.problem;
  const EpilogueRules& rules = rules_of(problem.epilogue);
  std::string text = " epilogue=" + in_quotes(rules.program.text());
  std::size_t number = 0;
  for (std::size_t i = 0; i < rules.operands.size(); ++i) {
    const EpilogueOperandRule& rule = rules.operands[i];
    const bool is_field =
        is_field_name(rule.name, problem.groups.has_value(), problem.convolution.has_value());
    text += is_field || grammar::is_program_operand(problem, rule.name) ? " epilogue." : " ";
    text += rule.name + "=";
    text += rule.is_number
                ? number_text(problem, number < line.numbers.size() ? line.numbers[number] : 1)
                : grammar::epilogue_operand_text(problem, i);
    number += rule.is_number ? 1 : 0;
  }
  return text;
}

// The first words of a line: the kind, the extents, and the fields of groups or a convolution.
std::string head_text(const GemmProblem& problem) {
  if (problem.convolution) return grammar::convolution_text(problem);
  std::string text = fmt::format("{} {}x{}x{}", problem.groups ? "grouped_gemm" : "gemm", problem.m,
                                 problem.n, problem.k);
  if (problem.l != 1 && !problem.groups) text += fmt::format("x{}", problem.l);
  return text + grammar::groups_text(problem);
}

struct ProductTexts {
  std::string a, b, out;
};
ProductTexts product_texts(const GemmProblem& problem) {
  if (problem.convolution)
    return {grammar::tensor_text(problem, true), grammar::tensor_text(problem, false),
            grammar::conv_out_text(problem)};
  const operation::ProductExtents extents = operation::product_extents(problem);
  const auto spell = [&](const MatrixType& matrix, const MatrixExtents& own) {
    return without_pointers(matrix_text(matrix, own), problem);
  };
  return {spell(problem.a, extents.a), spell(problem.b, extents.b),
          spell(problem.out, extents.out)};
}

std::string print(const ProblemLine& line) {
  const auto& [m, n, k, l, a, b, out, c, accumulator, math, epilogue, operands, groups, convolution,
               a_companions, b_companions] = line.problem;
  std::string text = head_text(line.problem);
  const auto [a_text, b_text, out_text] = product_texts(line.problem);
  const std::string silent{alias(a.dtype)};
  text += " a=" + a_text;
  if (b_text != silent) text += " b=" + b_text;
  text += grammar::scales_text(line.problem) + grammar::programs_text(line);
  if (out_text != silent) text += " out=" + out_text;
  if (c) text += " c=" + addend_text(*c, line.problem, Role::addend);
  if (accumulator != default_accumulator(line.problem))
    text += fmt::format(" acc={}", alias(accumulator));
  if (math != Math::native) text += fmt::format(" math={}", name(math));
  if (epilogue != default_epilogue) return text + epilogue_text(line);
  if (line.alpha != 1) text += fmt::format(" alpha={}", line.alpha);
  if (line.beta != 0) text += fmt::format(" beta={}", line.beta);
  return text;
}

}  // namespace

std::string to_string(const ProblemLine& line) { return print(line); }

std::string to_string(const GemmProblem& problem) {
  return print({.problem = problem, .alpha = 1, .beta = problem.c ? 1.0 : 0.0});
}

ProblemLine parse_problem(std::string_view line) {
  const std::vector<Word> words = split_words(line);
  if (words.empty()) refuse(Word{}, "a problem such as gemm 4096x4096x4096 a=bf16");
  const Word& kind = words.front();
  Fields fields;
  fields.is_grouped = kind.text == "grouped_gemm";
  fields.convolution.name = grammar::read_conv_name(kind.text);
  if (kind.text != "gemm" && !fields.is_grouped && !fields.is_convolution()) {
    const bool is_planned = kind.text == "scaled_gemm";
    refuse(kind,
           "gemm, grouped_gemm, or conv2d_fprop, conv2d_dgrad, conv2d_wgrad (and conv1d_, "
           "conv3d_)",
           is_planned ? "this version has no other operation" : "",
           is_planned ? ErrorKind::unsupported : ErrorKind::invalid_argument);
  }
  if (words.size() < 2)
    refuse(kind, fields.is_convolution() ? "the extents of the images, such as NxHxWxC, after the "
                                           "kind"
                                         : "a shape MxNxK after the kind");
  GemmProblem problem;
  if (!fields.is_convolution()) read_extents(words[1], fields.is_grouped, problem);
  fields.programs = grammar::read_operand_programs(words);
  read_program(words, fields);
  for (std::size_t i = 2; i < words.size(); ++i) read_field(words[i], fields);
  if (fields.is_convolution())
    grammar::apply_convolution(kind, words[1], fields.convolution, problem);
  return assemble(kind, problem, fields);
}

}  // namespace gemmery
