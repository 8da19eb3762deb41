// SPDX-License-Identifier: Apache-2.0
// Epilogues: expressions with Python's operators, programs, and their operands.
#include <map>
#include <utility>

#include <nanobind/operators.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string_view.h>

#include <gemmery/epilogue.hpp>
#include <gemmery/operand_program.hpp>
#include <gemmery/operand_program_text.hpp>

#include "arguments.hpp"
#include "bindings.hpp"
#include "docs.hpp"

namespace gemmery::python {
namespace {

using epilogue::Expression;
using epilogue::Program;
using epilogue::Reduction;

// --- words ---------------------------------------------------------------------------------------

template <class Value>
Value choose_by_word(std::string_view role, std::string_view word,
                     std::initializer_list<std::pair<std::string_view, Value>> words) {
  std::string expected;
  for (const auto& [name, value] : words) {
    if (name == word) return value;
    expected += (expected.empty() ? "\"" : ", \"") + std::string(name) + "\"";
  }
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = std::string(role),
               .expected = expected,
               .got = "\"" + std::string(word) + "\""});
}

Reduction read_reduction(std::string_view word) {
  return choose_by_word<Reduction>("reduction", word,
                                   {{"none", Reduction::none},
                                    {"sum", Reduction::sum},
                                    {"max", Reduction::max},
                                    {"min", Reduction::min},
                                    {"amax", Reduction::amax}});
}

Expression cast_expression(const Expression& x, nb::handle dtype, std::string_view rounding,
                           std::string_view overflow) {
  return epilogue::cast(
      x, to_dtype(dtype, "dtype"),
      choose_by_word<epilogue::Rounding>("rounding", rounding,
                                         {{"nearest_even", epilogue::Rounding::nearest_even},
                                          {"toward_zero", epilogue::Rounding::toward_zero}}),
      choose_by_word<epilogue::Overflow>(
          "overflow", overflow,
          {{"natural", epilogue::Overflow::natural}, {"saturate", epilogue::Overflow::saturate}}));
}

// --- programs ------------------------------------------------------------------------------------

Program program_of_results(nb::sequence results) {
  std::vector<epilogue::Result> read;
  for (const nb::handle result : results) {
    const auto parts = nb::cast<nb::sequence>(result);
    const std::size_t count = nb::len(parts);
    if (count != 2 && count != 3)
      throw nb::type_error("results: expected (name, value) or (name, value, reduction)");
    read.emplace_back(
        nb::cast<std::string>(parts[0]), nb::cast<Expression>(parts[1]),
        count == 3 ? read_reduction(nb::cast<std::string>(parts[2])) : Reduction::none);
  }
  return Program(read);
}

Program to_program(nb::handle object) {
  if (nb::isinstance<nb::str>(object)) return Program(to_text(object, "program"));
  return nb::cast<Program>(object);
}

// (program, "a") of a text.
std::pair<Program, std::string> parse_operand_program(const nb::str& text) {
  // Its operands are not known here: a text alone.
  const std::string given = to_text(text, "program");
  const ProductOperand operand = operand_of_program(given);
  return {read_operand_program(given, operand), operand == ProductOperand::a ? "a" : "b"};
}

// --- what a program is bound to ------------------------------------------------------------------

PyEpilogueArguments bind_operands(nb::handle program, const nb::dict& operands) {
  nb::dict given;
  std::vector<NamedOperand> bound;
  for (const auto& [key, value] : operands) {
    given[key] = value;
    const std::string name = to_text(key, "name of an operand");
    if (is_tensor_like(value)) {
      bound.push_back({name, import_tensor(value, name)});
      continue;
    }
    bound.push_back({name, import_number(value, name)});
  }
  return {to_program(program), std::move(given), std::move(bound)};
}

EpilogueArguments without_d(epilogue::Program program, const std::vector<NamedOperand>& given) {
  std::vector<EpilogueOperand> operands;
  for (const NamedOperand& operand : given) {
    if (operand.name == "D") continue;
    if (const auto* const tensor = std::get_if<ImportedTensor>(&operand.value)) {
      operands.push_back({operand.name, tensor->view});
    } else {
      operands.push_back({operand.name, std::get<double>(operand.value)});
    }
  }
  return EpilogueArguments(std::move(program), std::move(operands));
}

int visit_epilogue_arguments(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto* const arguments = nb::inst_ptr<PyEpilogueArguments>(self);
  Py_VISIT(arguments->given.ptr());
  for (const NamedOperand& operand : arguments->operands) {
    const auto* const tensor = std::get_if<ImportedTensor>(&operand.value);
    const int result = tensor == nullptr ? 0 : tensor->visit_references(visit, arg);
    if (result != 0) return result;
  }
  return 0;
}

int clear_epilogue_arguments(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  auto* const arguments = nb::inst_ptr<PyEpilogueArguments>(self);
  arguments->given.reset();
  for (NamedOperand& operand : arguments->operands) {
    if (auto* const tensor = std::get_if<ImportedTensor>(&operand.value))
      tensor->clear_references();
  }
  return 0;
}

PyType_Slot epilogue_arguments_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(visit_epilogue_arguments)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_epilogue_arguments)},
    {0, nullptr}};

// --- binding -------------------------------------------------------------------------------------

void bind_expressions(nb::module_& module) {
  using X = const Expression&;
  nb::class_<Expression>(module, "Expression",
                         "A value of a program. Copies share structure; building one has no side "
                         "effects.")
      .def(nb::init<double>(), nb::arg("constant"))
      .def(
          "__add__", [](X x, X y) { return x + y; }, nb::is_operator())
      .def(
          "__radd__", [](X x, X y) { return y + x; }, nb::is_operator())
      .def(
          "__sub__", [](X x, X y) { return x - y; }, nb::is_operator())
      .def(
          "__rsub__", [](X x, X y) { return y - x; }, nb::is_operator())
      .def(
          "__mul__", [](X x, X y) { return x * y; }, nb::is_operator())
      .def(
          "__rmul__", [](X x, X y) { return y * x; }, nb::is_operator())
      .def(
          "__truediv__", [](X x, X y) { return x / y; }, nb::is_operator())
      .def(
          "__rtruediv__", [](X x, X y) { return y / x; }, nb::is_operator())
      .def(
          "__pow__", [](X x, X y) { return epilogue::pow(x, y); }, nb::is_operator())
      .def(
          "__rpow__", [](X x, X y) { return epilogue::pow(y, x); }, nb::is_operator())
      .def(
          "__neg__", [](X x) { return -x; }, nb::is_operator())
      .def(
          "__pos__", [](X x) { return x; }, nb::is_operator())
      .def(
          "__abs__", [](X x) { return epilogue::abs(x); }, nb::is_operator())
      .def(
          "__lt__", [](X x, X y) { return x < y; }, nb::is_operator())
      .def(
          "__le__", [](X x, X y) { return x <= y; }, nb::is_operator())
      .def(
          "__gt__", [](X x, X y) { return x > y; }, nb::is_operator())
      .def(
          "__ge__", [](X x, X y) { return x >= y; }, nb::is_operator())
      .def(
          "__eq__", [](X x, X y) { return x == y; }, nb::is_operator())
      .def(
          "__ne__", [](X x, X y) { return x != y; }, nb::is_operator())
      .def(
          "__and__", [](X x, X y) { return epilogue::logical_and(x, y); }, nb::is_operator())
      .def(
          "__or__", [](X x, X y) { return epilogue::logical_or(x, y); }, nb::is_operator())
      .def(
          "__invert__", [](X x) { return !x; }, nb::is_operator())
      .def("__hash__", [](X x) { return reinterpret_cast<std::uintptr_t>(x.value().get()) >> 4; })
      .def("__bool__", [](X) -> bool {
        throw nb::type_error(
            "the truth of a traced value is not known before the kernel runs: use where(condition, "
            "x, y) instead of `if`, and & | ~ instead of `and` `or` `not`");
      });
  nb::implicitly_convertible<double, Expression>();
  nb::implicitly_convertible<int, Expression>();

  module.def("accum", &epilogue::accum, "The accumulators, in the compute type.");
  module.def(
      "operand", [](const nb::str& name) { return epilogue::operand(to_text(name, "name")); },
      nb::arg("name"), "A tensor or number, by the name under which EpilogueArguments binds it.");
  module.def("cast", &cast_expression, nb::arg("x"), nb::arg("dtype"),
             nb::arg("rounding") = "nearest_even", nb::arg("overflow") = "natural",
             "The value rounded to a narrower type; the program continues in the compute type.");
  module.def(
      "call",
      [](const nb::str& function, const std::vector<Expression>& operands) {
        return epilogue::call(to_text(function, "function"), operands);
      },
      nb::arg("function"), nb::arg("operands"),
      "A function of the text form by its name: a row of ops.def, another spelling of one, or what "
      "define_op named.");
  module.def(
      "functions",
      [] {
        std::map<std::string, int> arities;
#define GEMMERY_OP(name, arity, ...) arities[#name] = arity;
#include <gemmery/ops.def>
        return arities;
      },
      "The rows of ops.def: names with the numbers of their operands.");
  module.def("function_names", &epilogue::function_names,
             "What programs in text may call: rows of ops.def, other spellings, what define_op "
             "named, the reductions and cast.");
  module.def(
      "define_op",
      [](const nb::str& name, const nb::str& expression) {
        epilogue::define_op(to_text(name, "name"), to_text(expression, "expression"));
      },
      nb::arg("name"), nb::arg("expression"),
      "Gives an expression of x (and y, z) a name, from now on a function of programs.");
}

void bind_programs(nb::module_& module) {
  nb::class_<Program>(module, "Program", doc("Program"))
      .def(
          "__init__",
          [](Program* self, const nb::str& text) { new (self) Program(to_text(text, "program")); },
          nb::arg("text"))
      .def(
          "__init__",
          [](Program* self, nb::sequence results) {
            new (self) Program(program_of_results(results));
          },
          nb::arg("results"))
      .def_prop_ro(
          "text", [](const Program& program) { return program.text(); }, doc("Program.text"))
      .def_prop_ro(
          "inputs", [](const Program& program) { return program.inputs(); }, doc("Program.inputs"))
      .def_prop_ro(
          "outputs", [](const Program& program) { return program.outputs(); },
          doc("Program.outputs"))
      .def(
          "__eq__", [](const Program& x, const Program& y) { return x == y; }, nb::is_operator())
      .def("__hash__",
           [](const Program& program) { return std::hash<std::string>{}(program.text()); })
      .def("__reduce__",
           [](nb::handle self) {
             const std::string text = nb::cast<const Program&>(self).text();
             return nb::make_tuple(self.type(), nb::make_tuple(text));
           })
      .def("__repr__",
           [](const Program& program) { return "gemmery.Program(\"" + program.text() + "\")"; });
}

}  // namespace

PyEpilogueArguments::PyEpilogueArguments(epilogue::Program program, nb::dict names,
                                         std::vector<NamedOperand> values)
    : given(std::move(names)),
      operands(std::move(values)),
      native(without_d(std::move(program), operands)) {}

const ImportedTensor* PyEpilogueArguments::find_tensor(std::string_view name) const {
  for (const NamedOperand& operand : operands) {
    if (operand.name == name) return std::get_if<ImportedTensor>(&operand.value);
  }
  return nullptr;
}

void bind_epilogues(nb::module_& module) {
  bind_expressions(module);
  bind_programs(module);
  module.def("parse_operand_program", &parse_operand_program, nb::arg("text"),
             doc("parse_operand_program"));
  module.def(
      "operand_program_text",
      [](const Program& program, std::string_view operand) {
        return operand_program_text(program,
                                    operand == "b" ? ProductOperand::b : ProductOperand::a);
      },
      nb::arg("program"), nb::arg("operand"), doc("operand_program_text"));
  nb::class_<PyEpilogueArguments>(module, "EpilogueArguments",
                                  nb::type_slots(epilogue_arguments_slots),
                                  doc("EpilogueArguments"))
      .def(
          "__init__",
          [](PyEpilogueArguments* self, nb::handle program, const nb::dict& operands) {
            new (self) PyEpilogueArguments(bind_operands(program, operands));
          },
          nb::arg("program"), nb::arg("operands") = nb::dict())
      .def_prop_ro(
          "program", [](const PyEpilogueArguments& self) { return self.program(); },
          doc("EpilogueArguments.program"))
      .def_prop_ro(
          "operands", [](const PyEpilogueArguments& self) { return self.given; },
          doc("EpilogueArguments.operands"));
}

}  // namespace gemmery::python
