// SPDX-License-Identifier: Apache-2.0
// The library's Error as the classes of gemmery.errors.
#include "bindings.hpp"

#include <exception>

namespace gemmery::python {
namespace {

nb::str text(std::string_view words) { return nb::str(words.data(), words.size()); }

void raise(const Error& error) {
  const nb::object exception = make_exception(error);
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
}

}  // namespace

nb::object make_exception(const Error& error) {
  return nb::module_::import_("gemmery.errors")
      .attr("_make")(static_cast<int>(error.kind()), text(error.what()), text(error.operand()),
                     text(error.expected()), text(error.got()), text(error.hint()),
                     text(error.cause()));
}

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error);
    }
  });
}

}  // namespace gemmery::python
