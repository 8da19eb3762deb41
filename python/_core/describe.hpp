// SPDX-License-Identifier: Apache-2.0
// Described operations and their arguments as Python holds them.
#pragma once

#include <utility>

#include <gemmery/describe.hpp>

#include "kernels.hpp"

namespace gemmery::python {

// A Kernel for Python, too: everything that serves kernels serves it.
struct PyGemmOperation : PyKernel {
  describe::GemmOperationUniversal operation;

  explicit PyGemmOperation(describe::GemmOperationUniversal described)
      : PyKernel{.kernel = described}, operation(std::move(described)) {}
};

// The memory that it points to is kept by the Python object that made it.
struct PyDescribedArguments {
  describe::GemmArguments native;
  bool is_compiled = false;  // its kernels are in the process-wide store
};

// The same for a list of problems, with the operation that runs them.
struct PyDescribedGroups {
  describe::GemmOperationGrouped operation;
  describe::GemmGroupedArguments native;
  bool is_compiled = false;
};

void bind_descriptions(nb::module_& module);  // words and value types: descriptions.cpp

}  // namespace gemmery::python
