// SPDX-License-Identifier: Apache-2.0
// Kernels of users: source, machine code or Python callables, registered with the library. Users
// call gemmery.own_kernels.
#include <gemmery/user_kernel.hpp>

#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>

#include "kernels.hpp"

namespace gemmery::python {
namespace {

// --- Python functions that the library calls ----------------------------------------------------

// A reference to a Python object of a kernel. Kernels live as long as the process, so it is
// released when the interpreter exits. Read and written with the GIL.
struct Held {
  PyObject* function;
};

std::vector<std::shared_ptr<Held>>& held_functions() {
  static auto* const functions = new std::vector<std::shared_ptr<Held>>;  // outlives all kernels
  return *functions;
}

void let_go_of_functions() {
  for (const auto& held : held_functions()) Py_CLEAR(held->function);
  held_functions().clear();
}

void refuse_after_exit() {
  throw Error({.kind = ErrorKind::unavailable,
               .operand = "kernel",
               .expected = "a running Python",
               .got = "one that has ended"});
}

// The text that Python prints for an exception. It may not be valid UTF-8, for which nanobind's
// what() fails.
std::string words_of(const nb::python_error& error) {
  try {
    const nb::object lines =
        nb::module_::import_("traceback").attr("format_exception")(error.value());
    const nb::object text = nb::str("").attr("join")(lines).attr("rstrip")();
    const auto bytes = nb::cast<nb::bytes>(text.attr("encode")("utf-8", "backslashreplace"));
    return {bytes.c_str(), bytes.size()};
  } catch (const nb::python_error& other) {
    if (!other.matches(PyExc_Exception)) throw PythonInterruption(other.value());
    return "an exception that cannot be printed";
  }
}

// Copies share the function; constructed with the GIL, called without.
class Callback {
 public:
  // Throws TypeError, which names the role, for objects that are not callable.
  Callback(nb::handle function, std::string_view role)
      : held_(std::make_shared<Held>(checked(function, role).inc_ref().ptr())) {
    held_functions().push_back(held_);
  }

  // Calls `use` with the function, with the GIL.
  template <class Use>
  auto with(const Use& use) const {
    if (Py_IsInitialized() == 0) refuse_after_exit();
    const nb::gil_scoped_acquire gil;
    if (held_->function == nullptr) refuse_after_exit();
    try {
      return use(nb::borrow(held_->function));
    } catch (const nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) throw PythonInterruption(error.value());
      throw std::runtime_error(words_of(error));
    }
  }

 private:
  static nb::handle checked(nb::handle function, std::string_view role) {
    if (PyCallable_Check(function.ptr()) != 0) return function;
    const std::string text =
        std::string(role) + ": expected what can be called, got " + class_name(function);
    throw nb::type_error(text.c_str());
  }

  std::shared_ptr<Held> held_;
};

// --- what a callable is run for -----------------------------------------------------------------

nb::object tensor_object(const Tensor& view) {
  ImportedTensor tensor;
  tensor.view = view;
  tensor.base = nb::none();
  return nb::cast(std::move(tensor));
}

nb::object call_object(const UserCall& call) {
  const GemmArguments& arguments = call.arguments;
  const GemmProblem& problem = arguments.problem();
  nb::dict fields;
  fields["A"] = tensor_object(arguments.a());
  fields["B"] = tensor_object(arguments.b());
  fields["out"] = tensor_object(arguments.out());
  fields["C"] = arguments.c() ? tensor_object(*arguments.c()) : nb::none();
  fields["alpha"] = arguments.alpha();
  fields["beta"] = arguments.beta();
  nb::dict operands;
  for (const EpilogueOperand& operand : arguments.epilogue_operands()) {
    const auto* const tensor = std::get_if<Tensor>(&operand.value);
    operands[operand.name.c_str()] =
        tensor != nullptr ? tensor_object(*tensor) : nb::cast(std::get<double>(operand.value));
  }
  fields["operands"] = operands;
  fields["problem"] = to_string(problem);
  fields["problem_size"] = nb::make_tuple(problem.m, problem.n, problem.k, problem.l);
  fields["device"] = to_string(arguments.device());
  fields["stream"] = reinterpret_cast<std::uintptr_t>(call.stream.handle());
  fields["workspace"] = reinterpret_cast<std::uintptr_t>(call.workspace.data);
  fields["workspace_bytes"] = call.workspace.bytes;
  fields["max_multiprocessors"] = call.max_multiprocessors;
  return nb::module_::import_("gemmery.own_kernels").attr("KernelCall")(**fields);
}

UserCallable callable_of(nb::handle run, nb::handle prepare) {
  UserCallable callable;
  callable.run = [run = Callback(run, "run")](const UserCall& call) {
    run.with([&](const nb::object& callee) { callee(call_object(call)); });
  };
  if (!prepare.is_none()) {
    callable.prepare = [prepare = Callback(prepare, "prepare")](Device device) {
      prepare.with([&](const nb::object& callee) { callee(to_string(device)); });
    };
  }
  return callable;
}

// --- what is asked of a query -------------------------------------------------------------------

nb::object problem_object(const GemmProblem& problem) {
  nb::dict fields;
  fields["text"] = to_string(problem);
  fields["m"] = problem.m;
  fields["n"] = problem.n;
  fields["k"] = problem.k;
  fields["l"] = problem.l;
  return nb::module_::import_("gemmery.own_kernels").attr("Problem")(**fields);
}

nb::object ask(const nb::object& function, const GemmProblem& problem, const DeviceInfo& device) {
  return function(problem_object(problem), nb::cast(device));
}

// The first 80 characters of an object's repr.
std::string printed(nb::handle object) {
  return nb::cast<std::string>(nb::str(
      nb::repr(object).attr("__getitem__")(nb::slice(nb::none(), nb::int_(80), nb::none()))));
}

// Converts the result of a user's function; throws TypeError, which names the role, for a value of
// another type or out of range.
template <class Value>
Value read_answer(nb::handle answer, std::string_view role, std::string_view expected) {
  Value value{};
  if (nb::try_cast(answer, value)) return value;
  const std::string text = std::string(role) + ": expected a function that returns " +
                           std::string(expected) + ", got one that returned " + printed(answer);
  PyErr_SetString(PyExc_TypeError, text.c_str());
  nb::raise_python_error();
}

// True or None: supported. False or a text: not supported.
Status to_native_status(nb::handle answer) {
  if (answer.is_none()) return Status::success();
  if (nb::isinstance<nb::str>(answer)) {
    const std::string reason = to_text(answer, "the answer of supports()");
    return Status::fail(reason.empty() ? "its function supports() gave an empty text" : reason);
  }
  const int truth = PyObject_IsTrue(answer.ptr());
  if (truth < 0) nb::raise_python_error();
  if (truth == 1) return Status::success();
  if (nb::hasattr(answer, "error"))
    return Status::fail(nb::cast<std::string>(nb::str(answer.attr("error"))));
  return Status::fail("its function supports() says no");
}

std::function<Status(const Query&)> supports_of(nb::handle function) {
  if (function.is_none()) return {};
  return [asked = Callback(function, "supports")](const Query& query) {
    return asked.with([&](const nb::object& callee) {
      return to_native_status(ask(callee, query.problem, query.device));
    });
  };
}

std::function<double(const Query&)> predicted_us_of(nb::handle function) {
  if (function.is_none()) return {};
  return [asked = Callback(function, "predicted_us")](const Query& query) {
    return asked.with([&](const nb::object& callee) {
      return read_answer<double>(ask(callee, query.problem, query.device), "predicted_us",
                                 "a number of microseconds");
    });
  };
}

// --- from the fields that gemmery.own_kernels collects ------------------------------------------

// Converts a field; throws TypeError, which names it, for a value of another type or out of range.
template <class Value>
Value read(nb::handle given, const std::string& name, std::string_view expected) {
  Value value{};
  if (nb::try_cast(given, value)) return value;
  throw nb::type_error(
      (name + ": expected " + std::string(expected) + ", got " + printed(given)).c_str());
}

LayoutRule layout_of(nb::handle word, const std::string& role) {
  const std::string text = to_text(word, "layout of " + role);
  for (const LayoutRule rule : {LayoutRule::row, LayoutRule::column, LayoutRule::any})
    if (text == name(rule)) return rule;
  refuse(role, "the layout row, column or any", '"' + text + '"');
}

// 0 means the size of an element.
std::uint8_t alignment_of(nb::handle number, DType dtype, const std::string& role) {
  const auto bytes = read<std::int64_t>(number, "alignment of " + role, "a number of bytes");
  if (bytes == 0) return static_cast<std::uint8_t>(byte_width(dtype));
  if (bytes < 1 || bytes > std::numeric_limits<std::uint8_t>::max())
    refuse(role, "an alignment of 1, 2, 4, 8 or 16 bytes", std::to_string(bytes));
  return static_cast<std::uint8_t>(bytes);
}

// (dtype, layout, alignment)
OperandRule operand_rule(nb::handle rule, const std::string& role) {
  const DType dtype = to_dtype(rule[0], role);
  return {.dtype = dtype,
          .layout = layout_of(rule[1], role),
          .alignment = alignment_of(rule[2], dtype, role)};
}

OperandRules operand_rules(const nb::dict& fields) {
  OperandRules rules;
  rules.a = operand_rule(fields["A"], "A");
  rules.b = operand_rule(fields["B"], "B");
  rules.out = operand_rule(fields["out"], "out");
  rules.accumulator = to_dtype(fields["accumulator_type"], "accumulator_type");
  const std::string math = to_text(fields["math"], "math");
  const auto known = parse_math(math);
  if (!known) refuse("math", "a way to form products, as problem lines have it", '"' + math + '"');
  rules.math = *known;
  if (!fields["C"].is_none()) {
    rules.c = operand_rule(fields["C"], "C");
    rules.has_c = true;
  }
  return rules;
}

// (name, dtype or None for a number, "lmn" what it varies with, the adjacent index last, alignment)
EpilogueOperandRule epilogue_operand(nb::handle fields, const epilogue::Program& program) {
  EpilogueOperandRule rule{.name = to_text(fields[0], "name of an epilogue operand")};
  for (const std::string& output : program.outputs()) rule.is_output |= output == rule.name;
  if (fields[1].is_none()) {
    rule.is_number = true;
    return rule;
  }
  rule.dtype = to_dtype(fields[1], rule.name);
  const std::string indices = to_text(fields[2], "indices of " + rule.name);
  if (indices.find_first_not_of("lmn") != std::string::npos)
    refuse(rule.name, "the indices l, m and n that it varies with", '"' + indices + '"');
  rule.varies_l = indices.find('l') != std::string::npos;
  rule.varies_m = indices.find('m') != std::string::npos;
  rule.varies_n = indices.find('n') != std::string::npos;
  if (indices.ends_with('n')) rule.adjacent = Adjacent::along_n;
  if (indices.ends_with('m')) rule.adjacent = Adjacent::along_m;
  rule.alignment = alignment_of(fields[3], rule.dtype, rule.name);
  return rule;
}

std::optional<EpilogueRules> epilogue_rules(nb::handle program, nb::handle operands) {
  if (program.is_none()) return std::nullopt;
  EpilogueRules rules{.program = nb::cast<epilogue::Program>(program), .operands = {}};
  for (const nb::handle operand : operands)
    rules.operands.push_back(epilogue_operand(operand, rules.program));
  return rules;
}

std::vector<std::byte> bytes_of(nb::handle object) {
  const auto bytes = read<nb::bytes>(object, "images", "bytes of a cubin, or a str of PTX");
  const auto* const first = reinterpret_cast<const std::byte*>(bytes.c_str());
  return {first, first + bytes.size()};
}

// {"sm_90a": (cubin or None, ptx or None)}
UserImages images_of(const nb::dict& images) {
  UserImages result;
  for (const auto& [target, code] : images) {
    UserImage image{.target = to_target(target)};
    if (!code[0].is_none()) image.cubin = bytes_of(code[0]);
    if (!code[1].is_none()) image.ptx = to_text(code[1], "images");
    result.push_back(std::move(image));
  }
  return result;
}

LaunchRecipe launch_recipe(const nb::dict& fields) {
  LaunchRecipe recipe{.entry = to_text(fields["entry"], "entry"),
                      .parameters = read<std::vector<std::string>>(
                          fields["parameters"], "parameters", "a list of words")};
  if (PyCallable_Check(fields["grid"].ptr()) != 0) {
    recipe.grid_function = [asked = Callback(fields["grid"], "grid")](const GemmProblem& problem,
                                                                      const DeviceInfo& device) {
      return asked.with([&](const nb::object& callee) {
        return read_answer<std::array<std::uint32_t, 3>>(ask(callee, problem, device), "grid",
                                                         "three whole numbers from 0 to 2^32 - 1");
      });
    };
  } else {
    recipe.grid = read<std::array<std::string, 3>>(fields["grid"], "grid", "up to three factors");
  }
  using Three = std::array<std::uint32_t, 3>;
  recipe.block = read<Three>(fields["block"], "block", "up to three numbers below 2^32");
  recipe.cluster = read<Three>(fields["cluster"], "cluster", "up to three numbers below 2^32");
  recipe.shared_bytes =
      read<std::uint32_t>(fields["shared_bytes"], "shared_bytes", "a number below 2^32");
  recipe.clears_workspace = read<bool>(fields["clears_workspace"], "clears_workspace", "a bool");
  return recipe;
}

void set_code(UserKernel& kernel, const nb::dict& fields) {
  if (fields.contains("run")) {
    kernel.code = callable_of(fields["run"], fields["prepare"]);
    return;
  }
  kernel.launch = launch_recipe(fields);
  if (fields.contains("images")) {
    kernel.code = images_of(read<nb::dict>(fields["images"], "images", "a dict by target"));
    return;
  }
  kernel.code = UserSource{
      .text = to_text(fields["source"], "source"),
      .options = read<std::vector<std::string>>(fields["options"], "options", "a list of words")};
}

void set_workspace(UserKernel& kernel, nb::handle workspace) {
  if (PyCallable_Check(workspace.ptr()) == 0) {
    kernel.workspace_bytes = to_text(nb::str(workspace), "workspace");
    return;
  }
  kernel.workspace_function = [asked = Callback(workspace, "workspace")](const GemmProblem& problem,
                                                                         const DeviceInfo& device) {
    return asked.with([&](const nb::object& callee) {
      return read_answer<std::size_t>(ask(callee, problem, device), "workspace",
                                      "a whole number of bytes");
    });
  };
}

PyKernel register_user_kernel(const nb::dict& fields) {
  UserKernel kernel{.name = to_text(fields["name"], "name"),
                    .version = read<int>(fields["version"], "version", "a whole number"),
                    .operands = operand_rules(fields),
                    .deterministic = read<bool>(fields["deterministic"], "deterministic", "a bool"),
                    .code = UserSource{}};
  const auto multiples = read<std::array<std::int64_t, 3>>(fields["multiples"], "multiples",
                                                           "whole numbers by m, n and k");
  kernel.multiples = {.m = multiples[0], .n = multiples[1], .k = multiples[2]};
  kernel.epilogue = epilogue_rules(fields["epilogue"], fields["epilogue_operands"]);
  const auto design = read<std::map<std::string, std::string>>(fields["design"], "design",
                                                               "values by names that are words");
  for (const auto& [field, value] : design) kernel.design.push_back({field, value});
  for (const nb::handle target : fields["targets"]) kernel.targets.push_back(to_target(target));
  set_code(kernel, fields);
  set_workspace(kernel, fields["workspace"]);
  kernel.supports = supports_of(fields["supports"]);
  kernel.predicted_us = predicted_us_of(fields["predicted_us"]);
  const WithoutGil released;
  return {register_kernel(std::move(kernel))};
}

}  // namespace

void bind_user_kernels(nb::module_& module) {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&let_go_of_functions));
  module.def("register_kernel", &register_user_kernel, nb::arg("fields"),
             "Registers a user's kernel from the fields that gemmery.own_kernels collects.");
  module.def(
      "withdraw_kernel",
      [](const PyKernel& kernel) {
        const WithoutGil released;
        withdraw_kernel(kernel.kernel);
      },
      nb::arg("kernel"), "Removes a user's kernel from discovery.");
}

}  // namespace gemmery::python
