// SPDX-License-Identifier: Apache-2.0
// Messages for calls that nanobind refuses: too many arguments, other names, values of other types.
//
// nanobind writes its own message, with every signature. It has no hook for another, but calls each
// function through a pointer in the function's object. Here that pointer leads to a function that
// calls nanobind's, and acts on refused calls only: gemmery._call_errors compares the call with the
// signature. The place of the pointer is that of nanobind 3, which the build pins.
#include "bindings.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

static_assert(NB_VERSION_MAJOR == 3, "nb_func may look different in this version of nanobind");

namespace gemmery::python {
namespace {

using Call = PyObject* (*)(PyObject*, PyObject* const*, std::size_t, PyObject*);

// The beginning of nanobind's nb_func.
struct FunctionObject {
  PyVarObject head;
  Call call;
};

constexpr std::string_view refusal = "incompatible function arguments";

// nanobind's functions that call: one for each kind of signature.
constexpr std::size_t most_calls = 8;
std::array<Call, most_calls> nanobind_calls{};

// --- a refused call ------------------------------------------------------------------------------

std::size_t argument_count(std::size_t flags) {
  constexpr std::size_t bits = 8 * sizeof(std::size_t);
  return flags & ~(std::size_t{3} << (bits - 2));  // PY_VECTORCALL_ARGUMENTS_OFFSET, and nanobind's
}

// The first argument of a constructor is an object that is not constructed yet: only its class is
// looked at.
std::string describe_call(PyObject* function, PyObject* const* arguments, std::size_t count,
                          PyObject* names) {
  nb::list positional;
  for (std::size_t i = 0; i < count; ++i) positional.append(nb::handle(arguments[i]));
  nb::dict named;
  const nb::tuple keys = names == nullptr ? nb::tuple() : nb::borrow<nb::tuple>(names);
  for (std::size_t i = 0; i < keys.size(); ++i) named[keys[i]] = nb::handle(arguments[count + i]);
  const nb::object describe = nb::module_::import_("gemmery._call_errors").attr("describe_call");
  return nb::cast<std::string>(describe(nb::handle(function), nb::tuple(positional), named));
}

// Replaces nanobind's message; whatever else goes wrong here leaves it as it is.
void improve_error(PyObject* function, PyObject* const* arguments, std::size_t count,
                   PyObject* names) noexcept {
  nb::python_error raised;
  try {
    const std::string text = nb::cast<std::string>(nb::str(raised.value()));
    if (text.find(refusal) == std::string::npos) return raised.restore();
    const std::string better = describe_call(function, arguments, count, names);
    PyErr_SetString(PyExc_TypeError, better.c_str());
  } catch (...) {
    PyErr_Clear();
    raised.restore();
  }
}

template <std::size_t number>
PyObject* call_nanobind(PyObject* function, PyObject* const* arguments, std::size_t flags,
                        PyObject* names) {
  PyObject* const result = nanobind_calls[number](function, arguments, flags, names);
  if (result == nullptr && PyErr_ExceptionMatches(PyExc_TypeError) != 0) [[unlikely]]
    improve_error(function, arguments, argument_count(flags), names);
  return result;
}

template <std::size_t... numbers>
constexpr std::array<Call, most_calls> make_calls(std::index_sequence<numbers...>) {
  return {call_nanobind<numbers>...};
}
constexpr auto own_calls = make_calls(std::make_index_sequence<most_calls>());

// --- all functions of the module -----------------------------------------------------------------

bool is_function(nb::handle object) {
  const std::string name = nb::cast<std::string>(object.type().attr("__name__"));
  return name == "nb_func" || name == "nb_method";
}

void redirect(nb::handle function) {
  auto* const object = reinterpret_cast<FunctionObject*>(function.ptr());
  if (std::ranges::find(own_calls, object->call) != own_calls.end()) return;  // an alias
  for (std::size_t i = 0; i < most_calls; ++i) {
    if (nanobind_calls[i] != nullptr && nanobind_calls[i] != object->call) continue;
    nanobind_calls[i] = object->call;
    object->call = own_calls[i];
    return;
  }
}

void redirect_all(nb::handle scope) {
  for (const nb::handle value : scope.attr("__dict__").attr("values")()) {
    if (is_function(value)) redirect(value);
    if (nb::isinstance<nb::type_object>(value) &&
        nb::cast<std::string>(value.attr("__module__")) == "gemmery._core")
      redirect_all(value);
  }
}

}  // namespace

void bind_call_errors(nb::module_& module) { redirect_all(module); }

}  // namespace gemmery::python
