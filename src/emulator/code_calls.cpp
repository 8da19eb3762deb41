// SPDX-License-Identifier: Apache-2.0
// Libraries of PTX, their kernels, the kernels' attributes.
#include <algorithm>
#include <array>
#include <cstring>

#include <gemmery/error.hpp>

#include "emulator/handles.hpp"
#include "emulator/table.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::array<unsigned char, 4> elf_mark{0x7f, 'E', 'L', 'F'};
constexpr std::array<unsigned char, 4> fatbin_mark{0x50, 0xed, 0x55, 0xba};

bool begins_with(const void* code, const std::array<unsigned char, 4>& mark) {
  return std::memcmp(code, mark.data(), mark.size()) == 0;
}

// The text of a module; machine code is refused.
std::string_view ptx_of(const void* code) {
  if (code == nullptr) throw Refusal{cuda::Result::invalid_value, "no code"};
  const auto* const text = static_cast<const char*>(code);
  const bool has_mark = std::strlen(text) >= elf_mark.size();
  if (has_mark && (begins_with(code, elf_mark) || begins_with(code, fatbin_mark))) {
    throw Refusal{cuda::Result::no_binary_for_gpu,
                  "machine code was given, expected the text of PTX: compile for compute_90a"};
  }
  return text;
}

// An estimate: PTX has unlimited registers, and only ptxas knows how many are needed.
int register_estimate(const KernelImage& image) {
  constexpr std::uint32_t most = 255;
  return static_cast<int>(std::min(most, image.register_count));
}

void set_dynamic_shared_bytes(cuda::FunctionHandle& function, int bytes) {
  const std::int64_t room = function.device->info.shared_bytes_per_block -
                            static_cast<std::int64_t>(function.image->static_shared_bytes);
  if (bytes < 0 || bytes > room) {
    throw Refusal{cuda::Result::invalid_value, "at most " + std::to_string(room) +
                                                   " bytes of dynamic shared memory, got " +
                                                   std::to_string(bytes)};
  }
  function.max_dynamic_shared_bytes = bytes;
}

}  // namespace

cuda::Library load_library(std::string_view ptx) {
  try {
    auto library = std::make_unique<cuda::LibraryHandle>(ptx);
    const std::lock_guard lock(handles().mutex);
    const cuda::Library handle = library.get();
    handles().libraries.emplace(handle, std::move(library));
    return handle;
  } catch (const Error& error) {
    throw Refusal{cuda::Result::invalid_ptx, error.what()};
  }
}

void unload_library(cuda::Library library) {
  std::unique_ptr<cuda::LibraryHandle> gone;  // frees memory, which takes other locks
  const std::lock_guard lock(handles().mutex);
  const auto found = handles().libraries.find(library);
  if (found == handles().libraries.end()) throw Refusal{cuda::Result::invalid_handle, {}};
  gone = std::move(found->second);
  handles().libraries.erase(found);
  for (const auto& [name, kernel] : gone->kernels) handles().kernels.erase(kernel.get());
}

cuda::Kernel find_kernel(cuda::LibraryHandle& library, std::string_view name) {
  if (!library.module.has_entry(name)) {
    throw Refusal{cuda::Result::not_found, "the module has no entry \"" + std::string(name) + "\""};
  }
  const std::lock_guard lock(handles().mutex);
  std::unique_ptr<cuda::KernelHandle>& kernel = library.kernels[std::string(name)];
  if (kernel == nullptr) {
    kernel = std::make_unique<cuda::KernelHandle>();
    kernel->library = &library;
    kernel->entry = name;
    handles().kernels.insert(kernel.get());
  }
  return kernel.get();
}

// The kernel on a device; decoded now if necessary.
cuda::FunctionHandle& function_on(cuda::KernelHandle& kernel, EmulatedDevice& device) {
  Module& module = kernel.library->module;
  if (!module.runs_on(device.info)) {
    throw Refusal{
        cuda::Result::no_binary_for_gpu,
        "PTX for " + module.program().target + " does not run on " + to_string(device.info.target)};
  }
  std::shared_ptr<const KernelImage> image = module.image(kernel.entry, device);
  const std::lock_guard lock(handles().mutex);
  std::unique_ptr<cuda::FunctionHandle>& function = kernel.functions[device.ordinal];
  if (function == nullptr) {
    function = std::make_unique<cuda::FunctionHandle>();
    function->kernel = &kernel;
    function->device = &device;
    function->image = std::move(image);
  }
  return *function;
}

int attribute_of(const cuda::FunctionHandle& function, cuda::FunctionAttribute attribute) {
  switch (attribute) {
    case cuda::FunctionAttribute::shared_bytes:
      return static_cast<int>(function.image->static_shared_bytes);
    case cuda::FunctionAttribute::local_bytes:
      return static_cast<int>(function.image->local_bytes);
    case cuda::FunctionAttribute::registers:
      return register_estimate(*function.image);
    case cuda::FunctionAttribute::max_dynamic_shared_bytes:
      return function.max_dynamic_shared_bytes;
    case cuda::FunctionAttribute::non_portable_cluster_size_allowed:
      return function.allows_any_cluster ? 1 : 0;
  }
  throw Refusal{cuda::Result::invalid_value, "a kernel attribute that is not emulated"};
}

void set_attribute(cuda::FunctionHandle& function, cuda::FunctionAttribute attribute, int value) {
  const std::lock_guard lock(handles().mutex);
  if (attribute == cuda::FunctionAttribute::max_dynamic_shared_bytes) {
    set_dynamic_shared_bytes(function, value);
  } else if (attribute == cuda::FunctionAttribute::non_portable_cluster_size_allowed) {
    function.allows_any_cluster = value != 0;
  } else {
    throw Refusal{cuda::Result::invalid_value, "a kernel attribute that is only read"};
  }
}

namespace calls {

cuda::Result cuLibraryLoadData(cuda::Library* library, const void* code, int*, void**, unsigned,
                               int*, void**, unsigned) {
  return answer([&] {
    refuse_in_capture("cuLibraryLoadData");
    *library = load_library(ptx_of(code));
  });
}

cuda::Result cuLibraryUnload(cuda::Library library) {
  return answer([&] { unload_library(library); });
}

cuda::Result cuLibraryGetKernel(cuda::Kernel* kernel, cuda::Library library, const char* name) {
  return answer([&] { *kernel = find_kernel(*library, name); });
}

cuda::Result cuKernelGetFunction(cuda::Function* function, cuda::Kernel kernel) {
  return answer([&] {
    refuse_in_capture("cuKernelGetFunction");
    *function = &function_on(*kernel, current_device());
  });
}

cuda::Result cuKernelGetAttribute(int* value, cuda::FunctionAttribute attribute,
                                  cuda::Kernel kernel, cuda::DeviceOrdinal device) {
  return answer([&] {
    const cuda::FunctionHandle& function = function_on(*kernel, device_of(device));
    const std::lock_guard lock(handles().mutex);
    *value = attribute_of(function, attribute);
  });
}

cuda::Result cuKernelSetAttribute(cuda::FunctionAttribute attribute, int value, cuda::Kernel kernel,
                                  cuda::DeviceOrdinal device) {
  return answer([&] { set_attribute(function_on(*kernel, device_of(device)), attribute, value); });
}

}  // namespace calls
}  // namespace gemmery::emulator
