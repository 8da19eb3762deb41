// SPDX-License-Identifier: Apache-2.0
// Loads code and prepares entries.
#include "driver/code.hpp"

namespace gemmery::driver {

LoadedCode::LoadedCode(const Driver& driver, std::span<const std::byte> code,
                       const std::string& entry)
    : driver_(driver), entry_(entry) {
  const DriverApi& api = driver_.api();
  const ScopedRelaxedCapture relaxed(api);
  cuda::Library library = nullptr;
  check(api, api.cuLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "cuLibraryLoadData");
  check(api, api.cuLibraryGetKernel(&kernel_, library, entry.c_str()),
        "cuLibraryGetKernel of " + entry);
}

cuda::Function LoadedCode::prepare(const GpuDevice& device, int max_dynamic_shared_bytes) const {
  if (max_dynamic_shared_bytes > device.info().shared_bytes_per_block) {
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = entry_,
                 .expected = "at most " + std::to_string(device.info().shared_bytes_per_block) +
                             " bytes of shared memory on " + to_string(device.device()),
                 .got = std::to_string(max_dynamic_shared_bytes)});
  }
  const DriverApi& api = device.api();
  const ScopedContext current(device);
  const ScopedRelaxedCapture relaxed(api);
  check(api,
        api.cuKernelSetAttribute(cuda::FunctionAttribute::max_dynamic_shared_bytes,
                                 max_dynamic_shared_bytes, kernel_, device.ordinal()),
        "cuKernelSetAttribute of " + entry_);
  cuda::Function function = nullptr;
  check(api, api.cuKernelGetFunction(&function, kernel_), "cuKernelGetFunction of " + entry_);
  return function;
}

}  // namespace gemmery::driver
