// SPDX-License-Identifier: Apache-2.0
// Makes GemmArguments from tensors of any framework. The library validates them once.
#include "arguments.hpp"
#include "docs.hpp"

#include <algorithm>
#include <utility>

#include <gemmery/buffer.hpp>
#include <gemmery/discovery.hpp>

namespace gemmery::python {
namespace {

// --- construction --------------------------------------------------------------------------------

void read_performance(PyGemmArguments& arguments) {
  if (arguments.performance.is_none()) return;
  if (!nb::hasattr(arguments.performance, "max_sms"))
    throw nb::type_error("performance: expected PerformanceControls");
  const nb::object max_sms = arguments.performance.attr("max_sms");
  if (!max_sms.is_none() && !nb::try_cast(max_sms, arguments.max_multiprocessors)) {
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "max_sms",
                 .expected = "a number of multiprocessors",
                 .got = nb::cast<std::string>(nb::repr(max_sms))});
  }
  arguments.wants_deterministic = nb::cast<bool>(arguments.performance.attr("deterministic"));
}

// A tensor that the epilogue binds to D replaces `out` and must have its shape and type.
void check_stands_for_out(const ImportedTensor& d, const ImportedTensor& out) {
  const bool has_same_shape = std::equal(d.view.shape().begin(), d.view.shape().end(),
                                         out.view.shape().begin(), out.view.shape().end());
  if (has_same_shape && d.view.dtype() == out.view.dtype()) return;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "D",
               .expected = "a tensor like out, " + to_string(out.view),
               .got = to_string(d.view),
               .hint = "D is written in place of out; leave it out to write out"});
}

void check_writable_results(const PyEpilogueArguments& given) {
  for (const std::string& name : given.program().outputs()) {
    const ImportedTensor* const tensor = given.find_tensor(name);
    if (tensor == nullptr || !tensor->is_read_only) continue;
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = name,
                 .expected = "a tensor that may be written",
                 .got = "a read-only one"});
  }
}

// Calls `visit(name, tensor)` for every operand that has memory.
template <class Visit>
void for_each_tensor(const PyGemmArguments& arguments, const Visit& visit) {
  visit("A", arguments.A);
  visit("B", arguments.B);
  visit("out", arguments.result());
  if (arguments.C) visit("C", *arguments.C);
  for (const ImportedTensor& companion : arguments.companions) visit("scale", companion);
  const PyEpilogueArguments* const epilogue = arguments.epilogue_arguments();
  if (epilogue == nullptr) return;
  for (const NamedOperand& operand : epilogue->operands) {
    const auto* const tensor = std::get_if<ImportedTensor>(&operand.value);
    if (tensor != nullptr && operand.name != "D") visit(operand.name.c_str(), *tensor);
  }
}

void require_epilogue(nb::handle epilogue) {
  if (epilogue.is_none() || nb::isinstance<PyEpilogueArguments>(epilogue)) return;
  throw nb::type_error(("epilogue: expected EpilogueArguments, got " + class_name(epilogue) +
                        "; EpilogueArguments(program, **operands) makes it")
                           .c_str());
}

void validate_scaled(PyGemmArguments& arguments, const ScaledPair& operands, nb::handle accumulator,
                     const GemmOptions& options) {
  const Tensor& out = arguments.result().view;
  if (accumulator.is_none())
    arguments.native.emplace(operands.a, operands.b, out, options);
  else
    arguments.native.emplace(operands.a, operands.b, out, to_dtype(accumulator, "accumulator_type"),
                             options);
  note_memory(arguments);
}

void construct(PyGemmArguments* self, nb::handle A, nb::handle B, nb::handle out,
               nb::handle accumulator, nb::handle epilogue, nb::handle performance, nb::handle C,
               double alpha, double beta, std::string_view math) {
  PyGemmArguments arguments;
  arguments.epilogue = nb::borrow(epilogue);
  arguments.performance = nb::borrow(performance);
  require_epilogue(epilogue);
  const ScaledPair operands = import_operands(arguments, A, B);
  arguments.out = import_result(out, "out");
  if (!C.is_none()) arguments.C = import_tensor(C, "C");
  read_performance(arguments);
  if (!operands.a.is_scaled() && !operands.b.is_scaled())
    validate(arguments, accumulator, alpha, beta, to_math(math));
  else
    validate_scaled(arguments, operands, accumulator,
                    options_of(arguments, alpha, beta, to_math(math)));
  new (self) PyGemmArguments(std::move(arguments));
}

// The default program of elementwise arguments: A + B.
nb::object sum_of(nb::handle A, nb::handle B) {
  nb::dict names;
  names["A"] = A;
  names["B"] = B;
  std::vector<NamedOperand> operands;
  operands.push_back({"A", import_tensor(A, "A")});
  operands.push_back({"B", import_tensor(B, "B")});
  return nb::cast(
      PyEpilogueArguments(epilogue::Program("D = A + B"), std::move(names), std::move(operands)));
}

bool is_same_tensor(const ImportedTensor& one, const ImportedTensor& other) {
  if (one.base.is(other.base)) return true;
  return one.view.data() == other.view.data() && has_same_layout(one.view, other.view);
}

// The program computes on the tensors that are bound to it, so A and B must be among them. One
// tensor may be both.
void check_named(const PyElementwiseArguments& arguments, const char* name,
                 const ImportedTensor& given, const ImportedTensor& other) {
  const PyEpilogueArguments& epilogue = *arguments.epilogue_arguments();
  const ImportedTensor* const bound = epilogue.find_tensor(name);
  if (bound != nullptr && is_same_tensor(*bound, given)) return;
  if (bound == nullptr && is_same_tensor(given, other)) return;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = name,
               .expected = "the tensor that the epilogue \"" + epilogue.program().text() +
                           "\" binds to " + name,
               .got = bound == nullptr ? "one that it does not read" : "another one",
               .hint = bound == nullptr
                           ? "where a program reads one tensor, pass it for A and for B"
                           : std::string("EpilogueArguments(..., ") + name + "=" + name + ")"});
}

void construct_elementwise(PyElementwiseArguments* self, nb::handle A, nb::handle B, nb::handle out,
                           nb::handle epilogue, nb::handle performance) {
  PyElementwiseArguments arguments;
  arguments.is_elementwise = true;
  require_epilogue(epilogue);
  arguments.A = import_tensor(A, "A");
  arguments.B = import_tensor(B, "B");
  arguments.out = import_result(out, "out");
  arguments.epilogue = epilogue.is_none() ? sum_of(A, B) : nb::borrow(epilogue);
  check_named(arguments, "A", arguments.A, arguments.B);
  check_named(arguments, "B", arguments.B, arguments.A);
  arguments.performance = nb::borrow(performance);
  read_performance(arguments);
  validate(arguments, nb::none(), 1, 0, Math::native);
  new (self) PyElementwiseArguments(std::move(arguments));
}

// --- properties ---------------------------------------------------------------------------------

std::string device_text(const PyGemmArguments& arguments) {
  return arguments.is_meta ? "meta" : to_string(arguments.native->device());
}

nb::dict views_of(const PyGemmArguments& arguments) {
  nb::dict views;
  const auto add = [&](const char* name, const Tensor& view, const ImportedTensor& origin) {
    ImportedTensor tensor;
    tensor.view = view;
    tensor.base = origin.base;
    tensor.is_fake = origin.is_fake;
    tensor.is_meta = origin.is_meta;
    tensor.exchange = origin.exchange;
    tensor.stream_source = origin.stream_source;
    views[name] = nb::cast(std::move(tensor));
  };
  const GemmArguments& native = *arguments.native;
  add("A", native.a(), arguments.A);
  add("B", native.b(), arguments.B);
  add("out", native.out(), arguments.result());
  if (native.c() && arguments.C) add("C", *native.c(), *arguments.C);
  for (const EpilogueOperand& operand : native.epilogue_operands()) {
    const auto* const view = std::get_if<Tensor>(&operand.value);
    const ImportedTensor* const origin = arguments.epilogue_arguments()->find_tensor(operand.name);
    if (view != nullptr && origin != nullptr) add(operand.name.c_str(), *view, *origin);
  }
  return views;
}

}  // namespace

Math to_math(std::string_view word) {
  if (word == "native") return Math::native;
  if (const std::optional<Math> math = parse_math(word)) return *math;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "math",
               .expected =
                   "native tf32 tf32x3 bf16x3 bf16x6 bf16x9 f16x3 f16 bf16 fp8_fast fp8_promoted "
                   "saturate",
               .got = "\"" + std::string(word) + "\""});
}

void read_common(PyGemmArguments& arguments) {
  require_epilogue(arguments.epilogue);
  read_performance(arguments);
}

const PyEpilogueArguments* PyGemmArguments::epilogue_arguments() const {
  return epilogue.is_none() ? nullptr : nb::inst_ptr<PyEpilogueArguments>(epilogue);
}

std::string PyGemmArguments::native_name(const std::string& operand) const {
  const bool is_of_epilogue = is_elementwise && (operand == "A" || operand == "B");
  return is_of_epilogue ? "epilogue." + operand : operand;
}

const ImportedTensor& PyGemmArguments::result() const {
  const PyEpilogueArguments* const given = epilogue_arguments();
  const ImportedTensor* const d = given == nullptr ? nullptr : given->find_tensor("D");
  return d == nullptr ? out : *d;
}

void* stream_of(const PyGemmArguments& arguments, nb::handle given) {
  const Device device = arguments.native->device();
  // Objects that are not streams are refused on the CPU, too, where a stream has no effect.
  void* const named = given.is_none() ? nullptr : to_stream_handle(given, device);
  if (device.is_cpu()) return nullptr;
  if (!given.is_none()) return named;
  CurrentStream current;
  for_each_tensor(arguments, [&](const char* name, const ImportedTensor& tensor) {
    current.consider(tensor, name);
  });
  return current.handle();
}

void require_memory(const PyGemmArguments& arguments, std::string_view call) {
  if (!arguments.is_fake) return;
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = std::string(call),
               .expected = "tensors with memory",
               .got = "torch's meta or fake tensors",
               .hint = "these serve discovery and compilation only"});
}

GemmOptions options_of(const PyGemmArguments& arguments, double alpha, double beta, Math math) {
  GemmOptions options{
      .c = std::nullopt, .alpha = alpha, .beta = beta, .math = math, .epilogue = std::nullopt};
  if (arguments.C) options.c = arguments.C->view;
  if (const PyEpilogueArguments* const epilogue = arguments.epilogue_arguments()) {
    check_writable_results(*epilogue);
    if (&arguments.result() != &arguments.out)
      check_stands_for_out(arguments.result(), arguments.out);
    options.epilogue = epilogue->native;
  }
  return options;
}

void note_memory(PyGemmArguments& arguments) {
  for_each_tensor(arguments, [&](const char*, const ImportedTensor& tensor) {
    arguments.is_fake = arguments.is_fake || tensor.is_fake;
    arguments.is_meta = arguments.is_meta || tensor.is_meta;
    arguments.must_finish = arguments.must_finish || tensor.is_reused_at_once;
  });
}

void validate(PyGemmArguments& arguments, nb::handle accumulator, double alpha, double beta,
              Math math) {
  const GemmOptions options = options_of(arguments, alpha, beta, math);
  const Tensor& a = arguments.A.view;
  const Tensor& b = arguments.B.view;
  const Tensor& out = arguments.result().view;
  if (arguments.is_elementwise) {
    arguments.native.emplace(ElementwiseArguments(out, *options.epilogue).as_gemm());
  } else if (accumulator.is_none()) {
    arguments.native.emplace(a, b, out, options);
  } else {
    arguments.native.emplace(a, b, out, to_dtype(accumulator, "accumulator_type"), options);
  }
  note_memory(arguments);
}

// --- the Python class ----------------------------------------------------------------------------

namespace {

int visit_arguments(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const auto* const arguments = nb::inst_ptr<PyGemmArguments>(self);
  Py_VISIT(arguments->epilogue.ptr());
  Py_VISIT(arguments->performance.ptr());
  Py_VISIT(arguments->origin.ptr());
  int result = 0;
  for_each_held(*arguments, [&](const ImportedTensor& tensor) {
    if (result == 0) result = tensor.visit_references(visit, arg);
  });
  return result;
}

int clear_arguments(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  auto* const arguments = nb::inst_ptr<PyGemmArguments>(self);
  arguments->epilogue.reset();
  arguments->performance.reset();
  arguments->origin.reset();
  for_each_held(*arguments, [](ImportedTensor& tensor) { tensor.clear_references(); });
  return 0;
}

PyType_Slot arguments_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(visit_arguments)},
                                 {Py_tp_clear, reinterpret_cast<void*>(clear_arguments)},
                                 {0, nullptr}};

nb::object to_device_of(nb::handle self, nb::handle device) {
  return stage(self, device.is_none() ? Device::cuda(0) : to_device(device, "device"));
}

void sync(const PyGemmArguments& arguments, nb::handle stream) {
  require_memory(arguments, "sync");
  void* const handle = stream_of(arguments, stream);
  const WithoutGil released;
  finish_staged(arguments, handle);
}

// gemmery.metadata has the classes.
nb::object to_operands_metadata(nb::handle self) {
  return nb::module_::import_("gemmery.metadata").attr("operands_of")(self);
}

nb::tuple problem_size(const PyGemmArguments& arguments) {
  const GemmProblem& problem = arguments.native->problem();
  return nb::make_tuple(problem.m, problem.n, problem.k, problem.l);
}

}  // namespace

void bind_arguments(nb::module_& module) {
  nb::class_<PyRuntimeArguments>(module, "RuntimeArguments", doc("RuntimeArguments"))
      .def(
          "__init__",
          [](PyRuntimeArguments* self, nb::handle epilogue, nb::handle performance) {
            new (self) PyRuntimeArguments{nb::borrow(epilogue), nb::borrow(performance)};
          },
          nb::kw_only(), nb::arg("epilogue").none() = nb::none(),
          nb::arg("performance").none() = nb::none())
      .def_prop_ro(
          "epilogue", [](const PyRuntimeArguments& self) { return self.epilogue; },
          doc("RuntimeArguments.epilogue"))
      .def_prop_ro(
          "performance", [](const PyRuntimeArguments& self) { return self.performance; },
          doc("RuntimeArguments.performance"));

  nb::class_<PyGemmArguments, PyRuntimeArguments>(
      module, "GemmArguments", nb::type_slots(arguments_slots), doc("GemmArguments"))
      .def("__init__", &construct, nb::arg("A").none(), nb::arg("B").none(), nb::arg("out").none(),
           nb::arg("accumulator_type").none() = nb::none(), nb::kw_only(),
           nb::arg("epilogue").none() = nb::none(), nb::arg("performance").none() = nb::none(),
           nb::arg("C").none() = nb::none(), nb::arg("alpha") = 1.0, nb::arg("beta") = 0.0,
           nb::arg("math") = "native")
      .def_prop_ro(
          "A", [](const PyGemmArguments& self) { return self.A.base; }, doc("GemmArguments.A"))
      .def_prop_ro(
          "B", [](const PyGemmArguments& self) { return self.B.base; }, doc("GemmArguments.B"))
      .def_prop_ro(
          "out", [](const PyGemmArguments& self) { return self.out.base; },
          doc("GemmArguments.out"))
      .def_prop_ro(
          "C", [](const PyGemmArguments& self) { return self.C ? self.C->base : nb::none(); },
          doc("GemmArguments.C"))
      .def_prop_ro("views", &views_of, doc("GemmArguments.views"))
      .def_prop_ro(
          "accumulator_type",
          [](const PyGemmArguments& self) { return self.native->problem().accumulator; },
          doc("GemmArguments.accumulator_type"))
      .def_prop_ro(
          "alpha", [](const PyGemmArguments& self) { return self.native->alpha(); },
          doc("GemmArguments.alpha"))
      .def_prop_ro(
          "beta", [](const PyGemmArguments& self) { return self.native->beta(); },
          doc("GemmArguments.beta"))
      .def_prop_ro(
          "math", [](const PyGemmArguments& self) { return name(self.native->problem().math); },
          doc("GemmArguments.math"))
      .def_prop_ro("problem", &problem_line, doc("GemmArguments.problem"))
      .def_prop_ro("_identity", &identity_of,
                   "Bytes that are equal for one problem with the same numbers on one device.")
      .def_prop_ro("problem_size", &problem_size, doc("GemmArguments.problem_size"))
      .def_prop_ro("device", &device_text, doc("GemmArguments.device"))
      .def_ro("is_fake", &PyGemmArguments::is_fake, doc("GemmArguments.is_fake"))
      .def_ro("must_finish", &PyGemmArguments::must_finish, doc("GemmArguments.must_finish"))
      .def("set_data", &set_operand_data, nb::arg("operand"), nb::arg("tensor"),
           doc("GemmArguments.set_data"))
      .def(
          "set_scalars",
          [](PyGemmArguments& self, double alpha, double beta) {
            self.native->set_scalars(alpha, beta);
          },
          nb::arg("alpha"), nb::arg("beta"), doc("GemmArguments.set_scalars"))
      .def(
          "set_scalar",
          [](PyGemmArguments& self, std::string_view name, double value) {
            self.native->set_scalar(name, value);
          },
          nb::arg("name"), nb::arg("value"), doc("GemmArguments.set_scalar"))
      .def("to_operands_metadata", &to_operands_metadata, doc("GemmArguments.to_operands_metadata"))
      .def("to_device", &to_device_of, nb::arg("device").none() = nb::none(),
           doc("GemmArguments.to_device"))
      .def("sync", &sync, nb::arg("stream").none() = nb::none(), doc("GemmArguments.sync"))
      .def("__repr__", [](nb::handle self) {
        const auto& arguments = nb::cast<const PyGemmArguments&>(self);
        return nb::cast<std::string>(self.type().attr("__name__")) + "(" + problem_line(arguments) +
               ", device=" + device_text(arguments) + ")";
      });

  nb::class_<PyElementwiseArguments, PyGemmArguments>(module, "ElementwiseArguments",
                                                      doc("ElementwiseArguments"))
      .def("__init__", &construct_elementwise, nb::arg("A").none(), nb::arg("B").none(),
           nb::arg("out").none(), nb::kw_only(), nb::arg("epilogue").none() = nb::none(),
           nb::arg("performance").none() = nb::none());
}

}  // namespace gemmery::python
