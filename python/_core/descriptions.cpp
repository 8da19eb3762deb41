// SPDX-License-Identifier: Apache-2.0
// The enumerations and value types of the explicit description. gemmery.describe has the classes
// that users construct, and converts them to these.
#include <nanobind/operators.h>
#include <nanobind/stl/array.h>

#include <string>
#include <utility>
#include <vector>

#include "describe.hpp"

namespace gemmery::python {
namespace {

using describe::Element;
using describe::EpilogueFunctor;
using describe::MathInstruction;
using describe::OutputOp;
using describe::TensorDescription;
using describe::TileDescription;
using describe::VisitorOperand;

// --- words ---------------------------------------------------------------------------------------

void bind_all_words(nb::module_& module) {
  using enum describe::MathOperation;
  bind_words(module, "OpcodeClass", describe::OpcodeClass::TensorOp,
             "The units that multiply: CUDA cores or tensor cores.");
  bind_words(module, "MathOperation", multiply_add_mixed_input_upcast,
             "How products are accumulated.");
  bind_words(module, "Element", Element::float8_e5m2,
             "Scalar types; tfloat32 is stored as float32.")
      .def_prop_ro("dtype", [](Element element) { return describe::storage_type(element); });
  bind_words(module, "Layout", describe::Layout::TensorC32RSK32, "Packed orders of memory.");
  bind_words(module, "SwizzlingFunctor", describe::SwizzlingFunctor::StridedDgradHorizontalSwizzle,
             "The order in which tiles are visited; results do not depend on it.");
  bind_words(module, "GemmMode", describe::Mode::Array,
             "The meaning of a GEMM's pointers and slices.");
  bind_words(module, "SchedulerMode", describe::SchedulerMode::Host,
             "Where tiles of grouped problems are found; results do not depend on it.");
}

// --- values --------------------------------------------------------------------------------------

template <class Value>
void bind_text(nb::class_<Value>& type) {
  type.def("__str__", [](const Value& value) { return describe::to_string(value); });
}

void bind_values(nb::module_& module) {
  auto instruction = nb::class_<MathInstruction>(module, "MathInstruction");
  instruction.def(nb::init<std::array<int, 3>, Element, Element, Element, describe::OpcodeClass,
                           describe::MathOperation>());
  bind_text(instruction);
  auto tile = nb::class_<TileDescription>(module, "TileDescription");
  tile.def(
      nb::init<std::array<int, 3>, int, std::array<int, 3>, MathInstruction, std::array<int, 3>>());
  bind_text(tile);
  auto tensor = nb::class_<TensorDescription>(module, "TensorDescription");
  tensor.def(nb::init<Element, describe::Layout, int>());
  bind_text(tensor);
}

// "tensor", "row", "column", "scalar".
VisitorOperand::Kind to_kind(const std::string& word) {
  if (word == "row") return VisitorOperand::Kind::row;
  if (word == "column") return VisitorOperand::Kind::column;
  return word == "scalar" ? VisitorOperand::Kind::scalar : VisitorOperand::Kind::tensor;
}

// Operands as (name, kind, element).
EpilogueFunctor make_tree(const epilogue::Program& program, nb::sequence operands, Element output,
                          int count, Element accumulator) {
  std::vector<VisitorOperand> read;
  for (const nb::handle operand : operands) {
    read.push_back({to_text(operand[0], "name of an operand"),
                    to_kind(to_text(operand[1], "kind of an operand")),
                    nb::cast<Element>(operand[2])});
  }
  return describe::EpilogueVisitTree(program, std::move(read), output, count, accumulator);
}

void bind_functors(nb::module_& module) {
  auto functor = nb::class_<EpilogueFunctor>(module, "EpilogueFunctor",
                                             "The functor that is applied to the accumulators.");
  functor.def(
      "__eq__", [](const EpilogueFunctor& x, const EpilogueFunctor& y) { return x == y; },
      nb::is_operator());
  functor.def_ro("element_accumulator", &EpilogueFunctor::element_accumulator)
      .def_ro("element_compute", &EpilogueFunctor::element_compute);
  bind_text(functor);
  module.def("linear_combination", &describe::LinearCombination);
  module.def("linear_combination_clamp", &describe::LinearCombinationClamp);
  module.def("fast_linear_combination_clamp", &describe::FastLinearCombinationClamp);
  nb::enum_<epilogue::Activation>(module, "Activation")
      .value("identity", epilogue::Activation::identity)
      .value("relu", epilogue::Activation::relu)
      .value("leaky_relu", epilogue::Activation::leaky_relu)
      .value("tanh", epilogue::Activation::tanh)
      .value("sigmoid", epilogue::Activation::sigmoid)
      .value("silu", epilogue::Activation::silu)
      .value("hardswish", epilogue::Activation::hardswish)
      .value("gelu", epilogue::Activation::gelu);
  module.def("linear_combination_generic", &describe::LinearCombinationGeneric);
  module.def("epilogue_visit_tree", &make_tree, nb::arg("program"), nb::arg("operands"),
             nb::arg("element_output"), nb::arg("epilogue_vector_length"),
             nb::arg("element_accumulator"));
}

EpilogueOperand to_operand(nb::handle name, nb::handle value) {
  if (nb::isinstance<ImportedTensor>(value))
    return {to_text(name, "name of an operand"), nb::cast<const ImportedTensor&>(value).view};
  return {to_text(name, "name of an operand"), nb::cast<double>(value)};
}

OutputOp make_visitor_op(const nb::dict& operands) {
  OutputOp op;
  for (const auto& [name, value] : operands) op.operands.push_back(to_operand(name, value));
  return op;
}

}  // namespace

void bind_descriptions(nb::module_& module) {
  bind_all_words(module);
  bind_values(module);
  bind_functors(module);
  nb::class_<OutputOp>(module, "OutputOp", "The numbers and operands of one launch's functor.")
      .def_static("of_operands", &make_visitor_op, nb::arg("operands"))
      .def_ro("alpha", &OutputOp::alpha)
      .def_ro("beta", &OutputOp::beta)
      .def_ro("activation_args", &OutputOp::activation_args);
}

}  // namespace gemmery::python
