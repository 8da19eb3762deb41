// SPDX-License-Identifier: Apache-2.0
// Runs the forms on a device, hardware or emulated.
#include "tests/emulator/recording/forms.hpp"
#include "tests/emulator/recording/loaded_module.hpp"

namespace gemmery::recording {

std::vector<std::vector<std::uint64_t>> run_forms(const std::vector<Form>& forms, Device device) {
  const driver::GpuDevice& gpu = driver::open_device(device);
  const driver::ScopedContext current(gpu);
  const OwnedStream stream(device);
  const LoadedModule module(gpu, module_text(forms));
  std::vector<std::vector<std::uint64_t>> results;
  for (std::size_t index = 0; index < forms.size(); ++index)
    results.push_back(module.run<std::uint64_t>(
        "form_" + std::to_string(index), inputs_of(forms[index]),
        cases_per_form * forms[index].results.size(), 1, cases_per_form, stream.get()));
  return results;
}

}  // namespace gemmery::recording
