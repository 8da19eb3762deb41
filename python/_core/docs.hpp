// SPDX-License-Identifier: Apache-2.0
// The docstrings of _core.pyi by name, so that help() and editors show the same text. write_docs.py
// writes the table when the module is built.
#pragma once

#include <string_view>

namespace gemmery::python {

struct Docstring {
  std::string_view name;  // "Kernel.run"
  const char* text;
};

inline constexpr Docstring docstrings[] = {
#include <docstrings.inc>
};

// The docstring of a class, function or member; a name without one does not compile.
consteval const char* doc(std::string_view name) {
  for (const Docstring& docstring : docstrings)
    if (docstring.name == name) return docstring.text;
  throw "_core.pyi has no docstring of this name";
}

}  // namespace gemmery::python
