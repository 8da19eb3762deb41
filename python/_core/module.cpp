// SPDX-License-Identifier: Apache-2.0
// The native module `gemmery._core`: conversion between Python and the library, part by part.
#include "bindings.hpp"

NB_MODULE(_core, module) {
  using namespace gemmery::python;
  module.doc() = "The library as Python objects; `gemmery` is what users import.";
  bind_errors(module);
  bind_types(module);
  bind_tensors(module);
  bind_pointer_arrays(module);
  bind_streams(module);
  bind_epilogues(module);
  bind_arguments(module);
  bind_scales(module);
  bind_checkpoints(module);
  bind_grouped(module);
  bind_convolution(module);
  bind_artifacts(module);
  bind_kernels(module);
  bind_described_operations(module);
  bind_discovery(module);
  bind_checks(module);
  bind_emulation(module);
  bind_tuning(module);
  bind_cache(module);
  bind_log(module);
  bind_user_kernels(module);
  bind_program(module);
  module.def(
      "set_leak_warnings", &nb::set_leak_warnings, nb::arg("are_wanted"),
      "Enables or disables reports about objects that are alive when the interpreter exits.");
  bind_call_errors(module);
}
