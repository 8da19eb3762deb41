// SPDX-License-Identifier: Apache-2.0
#include "api/companion_operands.hpp"

#include <array>
#include <optional>
#include <utility>

#include "operation/companions.hpp"
#include "operation/operand_programs.hpp"

namespace gemmery::api {
namespace {

void append_program(const GemmProblem& problem, bool is_a, std::vector<CompanionTensor>& tensors) {
  const auto& program = operation::program_of(problem, is_a);
  if (!program) return;
  const std::vector<EpilogueOperandRule>& rules = rules_of(program->id).operands;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].is_number) continue;
    const operation::MatrixExtents own =
        operation::program_extents(problem, is_a, program->operands[i]);
    tensors.push_back({.name = operation::program_operand_name(is_a, rules[i].name),
                       .type = {.block = {}, .values = program->operands[i]},
                       .extents = {own.batch, own.rows, own.columns},
                       .is_of_a = is_a,
                       .is_zero_point = false,
                       .is_of_program = true});
  }
}

// The program with the tensors among these that are its own, and its numbers; 1 for missing ones.
std::optional<OperandProgram> bind_program(const ProblemLine& line, bool is_a,
                                           const std::vector<CompanionTensor>& companions,
                                           const std::vector<Tensor>& tensors) {
  const auto& program = operation::program_of(line.problem, is_a);
  if (!program) return std::nullopt;
  const EpilogueRules& rules = rules_of(program->id);
  const std::vector<double>& numbers = is_a ? line.a_numbers : line.b_numbers;
  std::vector<Tensor> own;
  for (std::size_t i = 0; i < companions.size(); ++i)
    if (companions[i].is_of_program && companions[i].is_of_a == is_a) own.push_back(tensors[i]);
  std::vector<EpilogueOperand> operands;
  std::size_t tensor = 0;
  std::size_t number = 0;
  for (const EpilogueOperandRule& rule : rules.operands)
    if (!rule.is_number)
      operands.push_back({rule.name, own[tensor++]});
    else
      operands.push_back({rule.name, number < numbers.size() ? numbers[number++] : 1.0});
  return OperandProgram(rules.program, std::move(operands));
}

void append(const GemmProblem& problem, bool is_a, std::vector<CompanionTensor>& tensors) {
  const OperandCompanions& companions = is_a ? problem.a_companions : problem.b_companions;
  if (companions.empty()) return;
  const operation::OperandExtents extents = operation::operand_extents(problem, is_a);
  const auto add = [&](std::string name, const CompanionType& type, bool is_zero_point) {
    const operation::MatrixExtents own =
        operation::companion_extents(type.block, type.layout, extents);
    tensors.push_back(
        {std::move(name), type, {own.batch, own.rows, own.columns}, is_a, is_zero_point});
  };
  for (std::size_t i = 0; i < companions.scales.size(); ++i)
    add(operation::scale_name(is_a, i), companions.scales[i], false);
  if (companions.zero_point)
    add(std::string(operation::zero_point_name(is_a)), *companions.zero_point, true);
  append_program(problem, is_a, tensors);
}

// As arguments take it: those of B have blocks of k before blocks of columns.
Companion as_given(const CompanionTensor& companion, const Tensor& view) {
  const CompanionType& type = companion.type;
  if (type.layout == ScaleLayout::swizzled_128x4) {
    // A matrix that the whole batch shares.
    const std::array shape{type.values.batch_stride == 0 ? std::int64_t{1} : view.extent(0),
                           view.extent(2)};
    return {Tensor(view.data(), view.dtype(), shape, view.device()), type.block, type.layout};
  }
  const int row = companion.is_of_a ? 1 : 2;
  const int column = companion.is_of_a ? 2 : 1;
  const std::array shape{view.extent(0), view.extent(row), view.extent(column)};
  const std::array strides{view.stride(0), view.stride(row), view.stride(column)};
  return {Tensor(view.data(), view.dtype(), shape, strides, view.device()), type.block,
          type.layout};
}

}  // namespace

std::vector<CompanionTensor> companion_tensors(const GemmProblem& problem) {
  std::vector<CompanionTensor> tensors;
  append(problem, true, tensors);
  append(problem, false, tensors);
  return tensors;
}

Numbers companion_numbers(const CompanionTensor& companion, std::uint64_t seed) {
  const DType dtype = companion.type.values.dtype;
  if (companion.is_of_program)
    return {.fill = Fill::normal,
            .seed = seed,
            .least = facts(dtype).kind == DTypeKind::unsigned_integer ? 0 : -2,
            .is_integer = is_integer(dtype)};
  const bool is_unsigned = facts(dtype).kind == DTypeKind::unsigned_integer;
  return {.fill = companion.is_zero_point ? Fill::integers : Fill::normal,
          .seed = seed,
          .least = is_unsigned ? 0 : -8,
          .most = is_unsigned ? 15 : 7,
          .is_integer = is_integer(dtype)};
}

ScaledPair bind_companions(const ProblemLine& line, const Tensor& a, const Tensor& b,
                           const std::vector<Tensor>& tensors) {
  const GemmProblem& problem = line.problem;
  ScaledPair pair{a, b};
  pair.a.table = problem.a_companions.table;
  pair.b.table = problem.b_companions.table;
  pair.a.order = problem.a_companions.order;
  pair.b.order = problem.b_companions.order;
  const std::vector<CompanionTensor> companions = companion_tensors(problem);
  pair.a.program = bind_program(line, true, companions, tensors);
  pair.b.program = bind_program(line, false, companions, tensors);
  for (std::size_t i = 0; i < companions.size(); ++i) {
    if (companions[i].is_of_program) continue;
    ScaledOperand& operand = companions[i].is_of_a ? pair.a : pair.b;
    const Companion given = as_given(companions[i], tensors[i]);
    if (companions[i].is_zero_point)
      operand.zero_point = given;
    else
      operand.scales.push_back(given);
  }
  return pair;
}

}  // namespace gemmery::api
