// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/operand_programs.hpp"

#include <cstdint>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "core/arithmetic.hpp"
#include "device/abi/operand_program.hpp"
#include "epilogue/emit_cuda.hpp"
#include "operation/operand_programs.hpp"
#include "providers/templates/epilogue_parameters.hpp"

namespace gemmery::templates {
namespace {

// A program's struct, and its name.
struct EmittedProgram {
  std::string head;
  std::string name = "gemmery::device::NoProgram";
};
EmittedProgram emit(EpilogueId program, std::string_view name) {
  if (program == default_epilogue) return {};
  return {.head = epilogue::emit_struct(program, /*is_turned=*/false, /*is_brief=*/false, name),
          .name = std::string(name)};
}

// A problem with the types and programs of the rules, of which only the multiplied types are read.
GemmProblem types_of(const OperandRules& rules) {
  const OperandPrograms programs = programs_of(rules.programs);
  GemmProblem problem;
  problem.a.dtype = rules.a.dtype;
  problem.b.dtype = rules.b.dtype;
  if (programs.a != default_epilogue) problem.a_companions.program.emplace().id = programs.a;
  if (programs.b != default_epilogue) problem.b_companions.program.emplace().id = programs.b;
  return problem;
}

abi::EpiloguePlace place_of(const Tensor& tensor, const MatrixType& type) {
  return {.data = const_cast<void*>(tensor.data()),
          .batch_stride = type.batch_stride,
          .row_stride = type.row_stride,
          .column_stride = type.column_stride};
}

void append_number(double value, bool is_double, runtime::LaunchPlan& plan) {
  if (is_double)
    append_parameter(value, plan);
  else
    append_parameter(static_cast<float>(value), plan);
}

// Arrays have at least one element.
void append_program(const OperandProgramType* type, const std::vector<EpilogueOperand>& operands,
                    bool is_double, runtime::LaunchPlan& plan) {
  int places = 0;
  std::vector<double> numbers;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto* const tensor = std::get_if<Tensor>(&operands[i].value);
    if (tensor == nullptr) {
      numbers.push_back(std::get<double>(operands[i].value));
      continue;
    }
    append_parameter(place_of(*tensor, type->operands[i]), plan);
    ++places;
  }
  if (places == 0) append_parameter(abi::EpiloguePlace{}, plan);
  if (numbers.empty()) numbers.push_back(0);
  for (const double number : numbers) append_number(number, is_double, plan);
  plan.parameter_size = round_up(plan.parameter_size, alignof(abi::EpiloguePlace));
}

}  // namespace

std::string operand_programs_text(const OperandRules& rules) {
  if (rules.programs == OperandProgramsId::none) return {};
  const OperandPrograms programs = programs_of(rules.programs);
  const EmittedProgram a = emit(programs.a, "ProgramA");
  const EmittedProgram b = emit(programs.b, "ProgramB");
  const GemmProblem problem = types_of(rules);
  const bool is_double = epilogue_compute_type(rules.accumulator) == DType::float64;
  return a.head + b.head +
         fmt::format(
             "using Programs = gemmery::device::OperandPrograms<{}, DType::{}, {}, "
             "DType::{}, {}>;\n\n",
             a.name, name(operation::multiplied_type(problem, true)), b.name,
             name(operation::multiplied_type(problem, false)), is_double ? "double" : "float");
}

void append_operand_programs(const GemmArguments& arguments, runtime::LaunchPlan& plan) {
  const GemmProblem& problem = arguments.problem();
  const bool is_double = epilogue_compute_type(problem.accumulator) == DType::float64;
  for (const bool is_a : {true, false}) {
    const auto& program = operation::program_of(problem, is_a);
    const BoundCompanions& memory = is_a ? arguments.a_companions() : arguments.b_companions();
    append_program(program ? &*program : nullptr, memory.program_operands, is_double, plan);
  }
}

}  // namespace gemmery::templates
