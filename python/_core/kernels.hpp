// SPDX-License-Identifier: Apache-2.0
// Kernels and artifacts as Python holds them.
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
  std::optional<double> predicted_us = std::nullopt;  // for the problem that was asked about
  bool is_measured = false;
  nb::object metadata = {};  // built when it is asked for
  bool has_run = false;      // without an artifact: its code is in the process-wide store
};

// A compiled kernel of the library, or of a kernel of the user's own: then two Python objects.
struct PyArtifact {
  std::optional<Artifact> native;
  nb::object compiled_obj;
  nb::object kernel_obj;
};

struct PyPreparedLaunch {
  PreparedLaunch launch;
  nb::object arguments;  // keep the memory alive
  Device device;
  std::map<std::string, ImportedTensor> patched;  // what set_data bound in its place
  bool must_finish = false;                       // as the arguments', or one that was patched
};

// Throws Error (invalid_argument) for an artifact of a kernel of the user's own.
const Artifact& native_artifact(const PyArtifact& artifact, std::string_view call);

// The facts of the device that arguments are on, or of the architecture that `cc` names.
const DeviceInfo& info_for(const PyGemmArguments& arguments, nb::handle cc);

// Which target of a kernel serves `cc`: an int or a device name mean a device, "sm_90a" is exact.
Target compile_target(const Kernel& kernel, nb::handle cc);

// Holds the result that arguments have against the oracle; `handle` is the stream that it was put
// on. Throws Error (unsupported) where an input was, or will be, overwritten in place.
VerifyReport check_against_oracle(const PyGemmArguments& arguments, const Kernel& kernel,
                                  void* handle);
void require_inputs_to_stay(const GemmArguments& arguments);

// The Python class gemmery.status.Status.
nb::object to_status(const Status& status);

}  // namespace gemmery::python
