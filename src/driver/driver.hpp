// SPDX-License-Identifier: Apache-2.0
// Drivers and their devices: NVIDIA's driver, opened at its first use and never closed, and any
// other that is registered.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/error.hpp>
#include <gemmery/stream.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "core/code_form.hpp"
#include "driver/cuda_api.hpp"

namespace gemmery::driver {

class MemoryPool;
class GpuDevice;

// The most devices of one type.
inline constexpr int max_devices = 64;

// A table of functions with the devices that it reports. Lives as long as the process.
class Driver {
 public:
  // Initialises the API. Throws Error (unavailable) if that fails.
  Driver(DeviceType type, const DriverApi& api, std::string path,
         CodeForm code_form = CodeForm::cubin);
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  DeviceType type() const noexcept { return type_; }
  const DriverApi& api() const noexcept { return api_; }
  const std::string& path() const noexcept { return path_; }
  CodeForm code_form() const noexcept { return code_form_; }  // the form that it loads
  int version() const noexcept { return version_; }           // 13000 for 13.0
  int device_count() const noexcept { return device_count_; }

  // The device with its context retained; made once. Throws Error (unavailable) for an index that
  // does not exist.
  GpuDevice& open(int index) const;

  // The first device with these facts that has been opened; nullptr if there is none.
  const GpuDevice* find_opened(const DeviceInfo& info) const noexcept;

 private:
  DeviceType type_;
  DriverApi api_;
  std::string path_;
  CodeForm code_form_;
  int version_ = 0;
  int device_count_ = 0;
  mutable std::mutex opening_;
  mutable std::array<std::atomic<GpuDevice*>, max_devices> devices_{};
};

// The driver for devices of a type; opened now if necessary. Throws Error (unavailable) if the
// library is not found (the message has the searched paths), if the driver is too old, or if the
// process was forked from one that used the driver.
const Driver& driver_for(DeviceType type);
inline const Driver& driver_for(Device device) { return driver_for(device.type); }

// The same as a value: nullptr and the reason.
struct DriverFinding {
  const Driver* driver = nullptr;
  std::string reason;  // empty if there is a driver
};
DriverFinding find_driver(DeviceType type) noexcept;

// Registers a driver for its type of device until the process ends. A second one for the same type
// is refused.
const Driver& register_driver(std::unique_ptr<Driver> driver);

// One GPU: its facts, its primary context, its memory pool. Lives as long as the process.
class GpuDevice {
 public:
  GpuDevice(const Driver& driver, int index);
  ~GpuDevice();

  const Driver& driver() const noexcept { return driver_; }
  const DriverApi& api() const noexcept { return driver_.api(); }
  Device device() const noexcept { return device_; }
  cuda::DeviceOrdinal ordinal() const noexcept { return ordinal_; }
  cuda::Context context() const noexcept { return context_; }
  const DeviceInfo& info() const noexcept { return info_; }
  MemoryPool& pool() const noexcept { return *pool_; }

  // A stream for internal work that belongs to no stream of the caller, such as reserving memory;
  // created at the first use.
  Stream housekeeping_stream() const;

 private:
  const Driver& driver_;
  Device device_;
  cuda::DeviceOrdinal ordinal_ = 0;
  cuda::Context context_ = nullptr;
  DeviceInfo info_;
  std::unique_ptr<MemoryPool> pool_;
  mutable std::once_flag stream_made_;
  mutable cuda::Stream housekeeping_stream_ = nullptr;
};

// The device; opened now if necessary. Later calls cost one load. Throws Error: invalid_argument
// for the CPU, unavailable if it does not exist.
GpuDevice& open_device(Device device);

// The first device of a type with these facts that the process has opened; nullptr if there is
// none. Opens nothing.
const GpuDevice* find_opened_device(DeviceType type, const DeviceInfo& info) noexcept;

// Throws Error (unavailable) in a child that was forked after the driver was initialised, in which
// CUDA does not work.
void refuse_after_fork();
bool is_forked_after_use() noexcept;

// Makes the device's context current, and restores the caller's at the end. Costs one query if it
// is current already.
class ScopedContext {
 public:
  explicit ScopedContext(const GpuDevice& device);
  ~ScopedContext();
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;

 private:
  const DriverApi& api_;
  bool is_pushed_ = false;
};

// Lets this thread load code and reserve memory while another stream of the process is being
// captured.
class ScopedRelaxedCapture {
 public:
  explicit ScopedRelaxedCapture(const DriverApi& api) noexcept : api_(api) { exchange(); }
  ~ScopedRelaxedCapture() { exchange(); }
  ScopedRelaxedCapture(const ScopedRelaxedCapture&) = delete;
  ScopedRelaxedCapture& operator=(const ScopedRelaxedCapture&) = delete;

 private:
  void exchange() noexcept { api_.cuThreadExchangeStreamCaptureMode(&mode_); }

  const DriverApi& api_;
  cuda::CaptureMode mode_ = cuda::CaptureMode::relaxed;
};

// "CUDA_ERROR_INVALID_VALUE (invalid argument)"
std::string describe(const DriverApi& api, cuda::Result result);

// Throws Error with the driver's message and the name of the call: out_of_memory if the driver
// reports that, launch for anything else.
[[noreturn]] void throw_driver_error(const DriverApi& api, cuda::Result result,
                                     std::string_view call);
inline void check(const DriverApi& api, cuda::Result result, std::string_view call) {
  if (result != cuda::Result::success) [[unlikely]]
    throw_driver_error(api, result, call);
}

// The same for a call whose only handle from the caller is a stream: an invalid or destroyed
// stream, if the driver detects it, becomes an invalid argument of that name.
[[noreturn]] void throw_stream_call_error(const DriverApi& api, cuda::Result result,
                                          std::string_view call, Stream stream);
inline void check_on_stream(const DriverApi& api, cuda::Result result, std::string_view call,
                            Stream stream) {
  if (result != cuda::Result::success) [[unlikely]]
    throw_stream_call_error(api, result, call, stream);
}

// Converts the public interface's opaque handles to the driver's.
inline cuda::Stream stream_handle(Stream stream) noexcept {
  return static_cast<cuda::Stream>(stream.handle());
}
inline cuda::DevicePointer device_pointer(const void* pointer) noexcept {
  return static_cast<cuda::DevicePointer>(reinterpret_cast<std::uintptr_t>(pointer));
}

}  // namespace gemmery::driver
