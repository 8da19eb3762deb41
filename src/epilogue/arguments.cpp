// SPDX-License-Identifier: Apache-2.0
// Binds a program's names to operands.
#include <gemmery/epilogue.hpp>
#include <gemmery/error.hpp>

#include <algorithm>
#include <utility>

#include "epilogue/expressed.hpp"
#include "epilogue/graph.hpp"

namespace gemmery {
namespace {

constexpr std::size_t most_read_tensors = 16;
constexpr std::size_t most_stored_tensors = 8;
constexpr std::size_t most_numbers = 16;

[[noreturn]] void refuse_operand(const std::string& name, std::string expected, std::string got,
                                 std::string hint = {},
                                 ErrorKind kind = ErrorKind::invalid_argument) {
  throw Error({.kind = kind,
               .operand = "epilogue operand " + name,
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

void check_names(const epilogue::Program& program, const std::vector<EpilogueOperand>& operands) {
  const std::vector<std::string> outputs = program.outputs();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string& name = operands[i].name;
    if (name == "D") refuse_operand(name, "no operand of this name", "one", "D is stored to out");
    const auto is_same = [&](const EpilogueOperand& other) { return other.name == name; };
    if (std::any_of(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(i), is_same))
      refuse_operand(name, "one tensor or number", "two");
    const bool is_result = contains(outputs, name);
    if (!is_result && !contains(program.inputs(), name)) {
      std::vector<std::string> known = program.inputs();
      known.insert(known.end(), outputs.begin() + 1, outputs.end());
      refuse_operand(name, "a name of \"" + program.text().substr(0, 300) + "\"", "none of them",
                     known.empty() ? "it has none beside accum and D" : "it has " + list(known));
    }
    if (is_result && std::holds_alternative<double>(operands[i].value))
      refuse_operand(name, "a tensor to store the result to", "a number");
  }
}

epilogue::Program without_unstored(const epilogue::Program& program,
                                   const std::vector<EpilogueOperand>& operands) {
  std::vector<std::string> stored;
  for (const std::string& name : program.outputs()) {
    const bool is_bound =
        std::ranges::find(operands, name, &EpilogueOperand::name) != operands.end();
    if (is_bound) stored.push_back(name);
  }
  return epilogue::keep_results(program, stored);
}

// In the program's order: inputs, then results. Inputs that only unstored results read are left
// out.
std::vector<EpilogueOperand> sorted(const epilogue::Program& program,
                                    std::vector<EpilogueOperand> operands) {
  std::vector<std::string> names = program.inputs();
  const std::vector<std::string> outputs = program.outputs();
  names.insert(names.end(), outputs.begin() + 1, outputs.end());
  std::vector<EpilogueOperand> result;
  result.reserve(names.size());
  for (const std::string& name : names) {
    const auto found = std::ranges::find(operands, name, &EpilogueOperand::name);
    if (found == operands.end())
      refuse_operand(name, "a tensor or a number", "none",
                     "the epilogue \"" + program.text().substr(0, 300) + "\" reads it");
    result.push_back(std::move(*found));
  }
  return result;
}

void check_counts(const epilogue::Program& program, const std::vector<EpilogueOperand>& operands) {
  const std::size_t results = operands.size() - program.inputs().size();
  const auto numbers =
      static_cast<std::size_t>(std::ranges::count_if(operands, [](const EpilogueOperand& operand) {
        return std::holds_alternative<double>(operand.value);
      }));
  const auto check = [](const char* what, std::size_t most, std::size_t count) {
    if (count <= most) return;
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = "epilogue",
                 .expected = "at most " + std::to_string(most) + " " + what,
                 .got = std::to_string(count)});
  };
  check("tensors to read", most_read_tensors, program.inputs().size() - numbers);
  check("tensors to store beside D", most_stored_tensors, results);
  check("numbers", most_numbers, numbers);
}

// A function that returns accum binds it by that name.
std::vector<EpilogueOperand> with_result_of_accum(const epilogue::Program& program,
                                                  std::vector<EpilogueOperand> operands) {
  const std::string stored(epilogue::result_of_accum);
  if (!contains(program.outputs(), stored)) return operands;
  for (EpilogueOperand& operand : operands)
    if (operand.name == "accum") operand.name = stored;
  return operands;
}

}  // namespace

EpilogueArguments::EpilogueArguments(epilogue::Program program,
                                     std::vector<EpilogueOperand> operands)
    : program_(std::move(program)), operands_(with_result_of_accum(program_, std::move(operands))) {
  check_names(program_, operands_);
  program_ = without_unstored(program_, operands_);
  operands_ = sorted(program_, std::move(operands_));
  check_counts(program_, operands_);
}

}  // namespace gemmery
