// SPDX-License-Identifier: Apache-2.0
// Runs the forms on a device, hardware or emulated, through the driver's function table.
#include <gemmery/buffer.hpp>

#include <span>

#include "driver/code.hpp"
#include "driver/driver.hpp"
#include "tests/emulator/recording/forms.hpp"

namespace gemmery::recording {
namespace {

namespace cuda = driver::cuda;

// Loads the whole module once; a kernel is found in it by name.
class Module {
 public:
  Module(const driver::GpuDevice& device, const std::string& text) : api_(device.api()) {
    driver::check(
        api_,
        api_.cuLibraryLoadData(&library_, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "cuLibraryLoadData");
  }
  ~Module() { api_.cuLibraryUnload(library_); }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  cuda::Function function(const std::string& name) const {
    cuda::Kernel kernel = nullptr;
    driver::check(api_, api_.cuLibraryGetKernel(&kernel, library_, name.c_str()), name);
    cuda::Function function = nullptr;
    driver::check(api_, api_.cuKernelGetFunction(&function, kernel), name);
    return function;
  }

 private:
  const driver::DriverApi& api_;
  cuda::Library library_ = nullptr;
};

}  // namespace

std::vector<std::vector<std::uint64_t>> run_forms(const std::vector<Form>& forms, Device device) {
  const driver::GpuDevice& gpu = driver::open_device(device);
  const driver::ScopedContext current(gpu);
  const OwnedStream stream(device);
  const Module module(gpu, module_text(forms));
  std::vector<std::vector<std::uint64_t>> results;
  for (std::size_t index = 0; index < forms.size(); ++index) {
    const Form& form = forms[index];
    const std::vector<std::uint64_t> inputs = inputs_of(form);
    std::vector<std::uint64_t> words(cases_per_form * form.results.size());
    const Buffer in(8 * inputs.size(), stream.get());
    const Buffer out(8 * words.size(), stream.get());
    copy(in.data(), device, inputs.data(), Device::cpu(), in.bytes(), stream.get());
    fill(out.data(), 0xa5, out.bytes(), stream.get());
    void* in_at = in.data();
    void* out_at = out.data();
    void* parameters[] = {&in_at, &out_at};
    const cuda::LaunchConfig config{.grid_x = 1,
                                    .grid_y = 1,
                                    .grid_z = 1,
                                    .block_x = cases_per_form,
                                    .block_y = 1,
                                    .block_z = 1,
                                    .shared_bytes = 0,
                                    .stream = driver::stream_handle(stream.get()),
                                    .attributes = nullptr,
                                    .attribute_count = 0};
    driver::check(
        gpu.api(),
        gpu.api().cuLaunchKernelEx(&config, module.function("form_" + std::to_string(index)),
                                   parameters, nullptr),
        form.name);
    copy(words.data(), Device::cpu(), out.data(), device, out.bytes(), stream.get());
    synchronize(stream.get());
    results.push_back(std::move(words));
  }
  return results;
}

}  // namespace gemmery::recording
