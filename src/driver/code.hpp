// SPDX-License-Identifier: Apache-2.0
// Machine code in a driver: loaded once for all devices, its entry prepared on each device where it
// is to run.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "driver/driver.hpp"

namespace gemmery::driver {

// Code known to a driver. Never unloaded: a launch or a captured graph anywhere in the process
// may still need it.
class LoadedCode {
 public:
  // `code`: a cubin, or PTX with a zero behind it, as the driver's code_form() says. Throws Error
  // (launch) with the driver's words for bytes that it does not take.
  LoadedCode(const Driver& driver, std::span<const std::byte> code, const std::string& entry);

  // The entry on one device, with the dynamic shared memory that its launches may ask for. Throws
  // Error: unsupported where the device offers less, launch for what else the driver refuses.
  cuda::Function prepare(const GpuDevice& device, int max_dynamic_shared_bytes) const;

 private:
  const Driver& driver_;
  cuda::Kernel kernel_ = nullptr;
  std::string entry_;
};

}  // namespace gemmery::driver
