// SPDX-License-Identifier: Apache-2.0
// Capture status and events.
#include "driver/stream.hpp"

#include <utility>

namespace gemmery::driver {

bool is_capturing(const GpuDevice& device, Stream stream) {
  const ScopedContext current(device);
  cuda::CaptureStatus status = cuda::CaptureStatus::none;
  const cuda::Result result = device.api().cuStreamIsCapturing(stream_handle(stream), &status);
  if (result == cuda::Result::stream_capture_implicit) return true;
  check_on_stream(device.api(), result, "cuStreamIsCapturing", stream);
  return status != cuda::CaptureStatus::none;
}

Event::Event(Device device, Kind kind) : device_(&open_device(device)) {
  const ScopedContext current(*device_);
  const unsigned flags = kind == Kind::timing ? cuda::event_default : cuda::event_disable_timing;
  check(device_->api(), device_->api().cuEventCreate(&handle_, flags), "cuEventCreate");
}

Event::~Event() {
  if (handle_ != nullptr && !is_forked_after_use()) device_->api().cuEventDestroy(handle_);
}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

void Event::record(Stream stream) const {
  const ScopedContext current(*device_);
  check_on_stream(device_->api(), device_->api().cuEventRecord(handle_, stream_handle(stream)),
                  "cuEventRecord", stream);
}

void Event::synchronize() const {
  const ScopedContext current(*device_);
  check(device_->api(), device_->api().cuEventSynchronize(handle_), "cuEventSynchronize");
}

void Event::make_wait(Stream stream) const {
  const ScopedContext current(*device_);
  check_on_stream(device_->api(),
                  device_->api().cuStreamWaitEvent(stream_handle(stream), handle_, 0),
                  "cuStreamWaitEvent", stream);
}

double elapsed_ms(const Event& start, const Event& end) {
  const ScopedContext current(*start.device_);
  float milliseconds = 0;
  const DriverApi& api = start.device_->api();
  check(api, api.cuEventElapsedTime(&milliseconds, start.handle_, end.handle_),
        "cuEventElapsedTime");
  return milliseconds;
}

}  // namespace gemmery::driver
