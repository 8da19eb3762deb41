// SPDX-License-Identifier: Apache-2.0
// Machine code in a driver: loaded once for all devices. Its entry is prepared on each device that
// runs it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "driver/driver.hpp"

namespace gemmery::driver {

// Thrown for bytes that a driver refuses because of their contents; of kind `launch`.
class CodeRefused : public Error {
 public:
  using Error::Error;
};

// Code loaded in a driver, for all its devices. Code that was ever launched stays loaded until the
// process ends, since a launch on any stream or a captured graph may need it later. Other code is
// unloaded with its last owner. Nothing is unloaded in a forked child or while the process ends.
class LoadedCode {
 public:
  // `code`: a cubin or zero-terminated PTX, depending on the driver's code_form(). Equal bytes are
  // loaded once for all callers. Throws CodeRefused with the driver's message for bytes that it
  // refuses, Error for any other failure.
  static std::shared_ptr<const LoadedCode> load(const Driver& driver,
                                                std::span<const std::byte> code,
                                                const std::string& entry);

  // The same for one owner, which keeps it loaded until the process ends.
  LoadedCode(const Driver& driver, std::span<const std::byte> code, const std::string& entry);
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  // The entry on one device, with the maximum of dynamic shared memory of its launches. Throws
  // Error: unsupported if the device has less, launch for any other refusal.
  cuda::Function prepare(const GpuDevice& device, int max_dynamic_shared_bytes) const;

  // Another kernel of the same code, whose dynamic shared memory needs no attribute (at most 48
  // KiB).
  cuda::Function prepare_other(const GpuDevice& device, const std::string& entry) const;

  // Must be called before a launch.
  void note_launch() const noexcept {
    if (!is_launched_.load(std::memory_order_relaxed)) [[unlikely]]
      is_launched_.store(true, std::memory_order_relaxed);
  }

 private:
  void unload() const noexcept;

  const Driver& driver_;
  cuda::Library library_ = nullptr;
  cuda::Kernel kernel_ = nullptr;
  std::string entry_;
  mutable std::atomic<bool> is_launched_ = false;
};

}  // namespace gemmery::driver
