// SPDX-License-Identifier: Apache-2.0
// Operands with what belongs to them besides their elements: scales, zero points, tables, programs.
#include <array>
#include <utility>

#include <nanobind/stl/array.h>

#include "arguments.hpp"

namespace gemmery::python {
namespace {

// (tensor, rows, k, is_swizzled), as gemmery.ScaledOperand has it.
Companion import_companion(nb::handle given, std::string_view role,
                           std::vector<ImportedTensor>& tensors) {
  tensors.push_back(import_tensor(nb::object(given[0]), role));
  const ScaleBlock block{nb::cast<std::int32_t>(nb::object(given[1])),
                         nb::cast<std::int32_t>(nb::object(given[2]))};
  const bool is_swizzled = nb::cast<bool>(nb::object(given[3]));
  return {tensors.back().view, block,
          is_swizzled ? ScaleLayout::swizzled_128x4 : ScaleLayout::strided};
}

// (program, operands, letter), as gemmery.OperandProgram has it.
OperandProgram import_program(nb::handle given, const std::string& letter,
                              std::vector<ImportedTensor>& tensors) {
  const auto program = nb::cast<epilogue::Program>(nb::object(given[0]));
  const nb::object named = given[2];
  if (!named.is_none() && nb::cast<std::string>(named) != letter)
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "program_" + letter,
                 .expected = "a program of " + letter,
                 .got = "a program of " + nb::cast<std::string>(named)});
  std::vector<EpilogueOperand> operands;
  for (const auto& [key, value] : nb::cast<nb::dict>(nb::object(given[1]))) {
    const auto name = nb::cast<std::string>(key);
    if (is_tensor_like(value)) {
      tensors.push_back(import_tensor(value, letter + "." + name));
      operands.push_back({name, tensors.back().view});
    } else {
      operands.push_back({name, import_number(value, letter + "." + name)});
    }
  }
  return OperandProgram(program, std::move(operands));
}

}  // namespace

PyOperand import_operand(nb::handle object, std::string_view role) {
  PyOperand operand;
  const bool is_scaled = nb::hasattr(object, "quantized") && nb::hasattr(object, "_scales");
  operand.quantized =
      import_tensor(is_scaled ? object.attr("quantized") : nb::borrow(object), role);
  operand.native.quantized = operand.quantized.view;
  if (!is_scaled) return operand;
  const std::string letter = role == "A" ? "a" : "b";
  for (const nb::handle scale : object.attr("_scales"))
    operand.native.scales.push_back(import_companion(scale, "scale_" + letter, operand.companions));
  const nb::object zero = object.attr("_zero");
  if (!zero.is_none())
    operand.native.zero_point = import_companion(zero, "zero_" + letter, operand.companions);
  if (nb::cast<bool>(object.attr("_is_prepared"))) operand.native.order = ElementOrder::fragments;
  const nb::object table = object.attr("_table");
  if (!table.is_none()) operand.native.table = CodeTable{nb::cast<std::array<float, 16>>(table)};
  const nb::object program = object.attr("_program");
  if (!program.is_none())
    operand.native.program = import_program(program, letter, operand.companions);
  return operand;
}

ScaledPair import_operands(PyGemmArguments& arguments, nb::handle A, nb::handle B) {
  PyOperand a = import_operand(A, "A");
  PyOperand b = import_operand(B, "B");
  arguments.A = std::move(a.quantized);
  arguments.B = std::move(b.quantized);
  for (std::vector<ImportedTensor>* const tensors : {&a.companions, &b.companions})
    for (ImportedTensor& tensor : *tensors) arguments.companions.push_back(std::move(tensor));
  return {std::move(a.native), std::move(b.native)};
}

}  // namespace gemmery::python
