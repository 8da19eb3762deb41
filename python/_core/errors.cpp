// SPDX-License-Identifier: Apache-2.0
// Converts the library's Error to the classes of gemmery.errors.
#include "bindings.hpp"

#include <exception>
#include <typeinfo>

namespace gemmery::python {
namespace {

// A text may contain a file name that is invalid UTF-8; it is decoded like os.fsdecode.
nb::object text(std::string_view words) {
  PyObject* const decoded =
      PyUnicode_DecodeUTF8(words.data(), static_cast<Py_ssize_t>(words.size()), "surrogateescape");
  if (decoded == nullptr) nb::raise_python_error();
  return nb::steal(decoded);
}

void raise(const PythonInterruption& interruption) {
  const nb::handle exception = interruption.exception();
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
}

// A signal whose handler has not run yet is handled first. An exception of the handler, such as
// KeyboardInterrupt, is raised in place of the error, which becomes its context.
void raise(const Error& error, const std::exception_ptr& thrown) {
  try {
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
    const nb::object exception = make_exception(error);
    PyErr_SetObject(exception.type().ptr(), exception.ptr());
  } catch (nb::python_error& raised) {
    add_context(raised, thrown);
    raised.restore();
  }
}

}  // namespace

void refuse(std::string_view operand, std::string expected, std::string got, std::string hint,
            ErrorKind kind) {
  throw Error({.kind = kind,
               .operand = std::string(operand),
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

nb::object make_exception(const Error& error) {
  return nb::module_::import_("gemmery.errors")
      .attr("_make")(static_cast<int>(error.kind()), text(error.what()), text(error.operand()),
                     text(error.expected()), text(error.got()), text(error.hint()),
                     text(error.cause()));
}

void add_context(const nb::python_error& raised, const std::exception_ptr& error) noexcept {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const Error& lost) {
    try {
      PyException_SetContext(raised.value().ptr(), make_exception(lost).release().ptr());
    } catch (const nb::python_error&) {
      // A second interruption: the first one is raised without a context.
    }
  } catch (...) {
  }
}

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error, thrown);
    } catch (const PythonInterruption& interruption) {
      raise(interruption);
    } catch (const std::bad_cast&) {  // nanobind's, which would come out as RuntimeError
      PyErr_SetString(PyExc_TypeError, "a value of another kind, or beyond the range of its type");
    }
  });
}

}  // namespace gemmery::python
