// SPDX-License-Identifier: Apache-2.0
// Launches on different streams share the memory, so each waits for the previous one.
#include "runtime/launch_workspace.hpp"

namespace gemmery::runtime {

LaunchWorkspace::LaunchWorkspace(Device device, std::size_t bytes) {
  if (bytes == 0) return;
  if (device.is_cpu()) {
    memory_ = Buffer(bytes, Stream::cpu());
    fill(memory_.data(), 0, bytes, Stream::cpu());
    return;
  }
  gpu_ = &driver::open_device(device);
  const Stream stream = gpu_->housekeeping_stream();
  memory_ = Buffer(bytes, stream);
  fill(memory_.data(), 0, bytes, stream);
  last_use_.emplace(device, driver::Event::Kind::ordering);
  // Any stream may launch from now on without waiting for the stream on which the memory was
  // allocated.
  const driver::ScopedRelaxedCapture relaxed(gpu_->api());
  synchronize(stream);
}

// The memory returns to the pool when the last launch that uses it has finished.
LaunchWorkspace::~LaunchWorkspace() {
  if (gpu_ == nullptr || !last_stream_ || !last_use_ || driver::is_forked_after_use()) return;
  try {
    last_use_->make_wait(gpu_->housekeeping_stream());
  } catch (...) {
    // The process is ending or the device is lost, so nothing uses the memory.
  }
}

bool LaunchWorkspace::begin(Stream stream) {
  if (gpu_ == nullptr || driver::is_capturing(*gpu_, stream)) return false;
  if (last_stream_ && *last_stream_ != stream) last_use_->make_wait(stream);
  return true;
}

void LaunchWorkspace::end(Stream stream) {
  last_use_->record(stream);
  last_stream_ = stream;
}

}  // namespace gemmery::runtime
