// SPDX-License-Identifier: Apache-2.0
// Kernels and artifacts for Python.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <gemmery/kernel.hpp>
#include <gemmery/verify.hpp>

#include "arguments.hpp"
#include "bindings.hpp"

namespace gemmery::python {

struct PyKernel {
  Kernel kernel;
  std::optional<double> predicted_us = std::nullopt;  // for the problem of the query
  bool is_measured = false;
  nb::object metadata = {};  // built on request
  bool has_run = false;      // without an artifact: its code is in the process-wide store
};

// A compiled kernel of the library, or of the user; the latter consists of two Python objects.
struct PyArtifact {
  std::optional<Artifact> native;
  nb::object compiled_obj;
  nb::object kernel_obj;
};

struct PyPreparedLaunch {
  PreparedLaunch launch;
  nb::object arguments;  // keeps the memory alive
  Device device;
  std::map<std::string, ImportedTensor> patched;  // tensors that set_data has bound instead
  bool must_finish = false;                       // true for the arguments or a patched tensor
};

// Throws Error (invalid_argument) for an artifact of a user's kernel.
const Artifact& native_artifact(const PyArtifact& artifact, std::string_view call);

// The facts of the device that arguments are on, or of the architecture that `cc` names.
const DeviceInfo& info_for(const PyGemmArguments& arguments, nb::handle cc);

// The target of a kernel for `cc`: an int or a device name mean a device, "sm_90a" is exact.
Target compile_target(const Kernel& kernel, nb::handle cc);

// The problem of a text line or of arguments.
ProblemLine line_of(nb::handle problem);

// The given device. If it is None: the arguments' device, or the CPU for a text line.
Device device_for(nb::handle device, nb::handle problem);

// Compares the result in the arguments with the oracle; `handle` is the stream on which it was
// computed. Throws Error (unsupported) if an input was, or will be, overwritten in place.
VerifyReport check_against_oracle(const PyGemmArguments& arguments, const Kernel& kernel,
                                  void* handle);
void require_inputs_to_stay(const GemmArguments& arguments);

// The Python class gemmery.status.Status.
nb::object to_status(const Status& status);

}  // namespace gemmery::python
