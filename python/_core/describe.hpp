// SPDX-License-Identifier: Apache-2.0
// Described operations and their arguments for Python.
#pragma once

#include <utility>
#include <vector>

#include <gemmery/artifact.hpp>
#include <gemmery/describe.hpp>
#include <gemmery/describe_conv.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/family.hpp>

#include "kernels.hpp"

namespace gemmery::python {

// Derives from Kernel in Python, too, so that all functions for kernels accept it.
struct PyGemmOperation : PyKernel {
  describe::GemmOperationUniversal operation;

  explicit PyGemmOperation(describe::GemmOperationUniversal described)
      : PyKernel{.kernel = described}, operation(std::move(described)) {}
};

// The Python object that created it keeps the memory alive.
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

// The same for a convolution.
struct PyConvOperation : PyKernel {
  describe::Conv2dOperation operation;

  explicit PyConvOperation(describe::Conv2dOperation described)
      : PyKernel{.kernel = described}, operation(std::move(described)) {}
};
struct PyDescribedConv {
  describe::Conv2dArguments native;
  bool is_compiled = false;
};

// --- what operations share ----------------------------------------------------------------------

inline Stream stream_on(Device device, nb::handle stream) {
  return Stream::of(stream.is_none() ? nullptr : to_stream_handle(stream, device), device);
}

// A first launch on a GPU compiles, which Ctrl-C must end.
template <class Arguments>
void compile_before_first_launch(Arguments& arguments) {
  const Device device = arguments.native.device();
  if (arguments.is_compiled || device.type == DeviceType::emulated) return;
  std::vector<CompileJob> jobs;
  for (const Kernel& kernel : arguments.native.kernels())
    jobs.push_back({kernel, kernel.family().target_for(kernel, device_info(device))});
  std::vector<CompileResult> results;
  run_interruptibly(
      [&](const std::stop_token& stop) { results = compile_all(jobs, {.stop = stop}); });
  for (const CompileResult& result : results) {
    if (result.error) throw *result.error;
  }
  arguments.is_compiled = true;
}

template <class Operation, class Arguments>
void launch_operation(const Operation& self, Arguments& arguments, nb::handle stream) {
  const Device device = arguments.native.device();
  const Stream on = stream_on(device, stream);
  with_nvrtc([&] {
    compile_before_first_launch(arguments);
    run_on(device, [&] { self.operation.run(arguments.native, on); });
  });
}

template <class Arguments>
std::vector<PyKernel> kernels_of(const Arguments& arguments) {
  std::vector<PyKernel> kernels;
  for (const Kernel& kernel : arguments.native.kernels()) kernels.push_back({.kernel = kernel});
  return kernels;
}

// An operation keeps its metadata, which the garbage collector must see.
template <class Operation>
int visit_operation(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<Operation>(self)->metadata.ptr());
  return 0;
}
template <class Operation>
int clear_operation(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<Operation>(self)->metadata.reset();
  return 0;
}
template <class Operation>
PyType_Slot* operation_slots() {
  static PyType_Slot slots[] = {
      {Py_tp_traverse, reinterpret_cast<void*>(&visit_operation<Operation>)},
      {Py_tp_clear, reinterpret_cast<void*>(&clear_operation<Operation>)},
      {0, nullptr}};
  return slots;
}

// Binds the enumerators from 0 to `last` with the library's names.
template <class Word>
auto bind_words(nb::module_& module, const char* type, Word last, const char* doc) {
  nb::enum_<Word> words(module, type, doc);
  for (int at = 0; at <= static_cast<int>(last); ++at) {
    const auto word = static_cast<Word>(at);
    words.value(std::string(describe::name(word)).c_str(), word);
  }
  words.def("__str__", [](Word word) { return describe::name(word); });
  words.def("__repr__", [](Word word) { return "describe." + std::string(describe::name(word)); });
  return words;
}

void bind_descriptions(nb::module_& module);            // words and value types: descriptions.cpp
void bind_described_convolutions(nb::module_& module);  // describe_conv.cpp

}  // namespace gemmery::python
