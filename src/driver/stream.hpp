// SPDX-License-Identifier: Apache-2.0
// Functions of streams beyond the public interface: capture status, order between streams.
#pragma once

#include <gemmery/stream.hpp>

#include "driver/driver.hpp"

namespace gemmery::driver {

// True if work on the stream is recorded into a graph instead of executed. The legacy default
// stream also counts as captured while it cannot be used because another stream is being captured.
// The call does not invalidate a capture.
bool is_capturing(const GpuDevice& device, Stream stream);

// A point in a stream's order, with its time if `timing` is set.
class Event {
 public:
  enum class Kind { ordering, timing };

  Event(Device device, Kind kind);
  ~Event();
  Event(Event&& other) noexcept : device_(other.device_), handle_(other.handle_) {
    other.handle_ = nullptr;
  }
  Event& operator=(Event&& other) noexcept;

  void record(Stream stream) const;
  void synchronize() const;
  void make_wait(Stream stream) const;

 private:
  friend double elapsed_ms(const Event& start, const Event& end);

  const GpuDevice* device_;
  cuda::Event handle_ = nullptr;
};

// Milliseconds between two timing events that have both been reached.
double elapsed_ms(const Event& start, const Event& end);

}  // namespace gemmery::driver
