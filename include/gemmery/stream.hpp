// SPDX-License-Identifier: Apache-2.0
// A stream: a queue of work for one device. A handle, not an owner.
#pragma once

#include <gemmery/device.hpp>

namespace gemmery {

// There is intentionally no default stream: leaving a stream out does not compile. `Stream::cpu()`
// stands for the calling thread.
class Stream {
 public:
  Stream() = delete;

  // `handle` is a CUstream or cudaStream_t of `device`; nullptr is the legacy default stream,
  // (void*)0x2 the per-thread one. The caller keeps the stream alive while work is put on it.
  static constexpr Stream of(void* handle, Device device) { return Stream{handle, device}; }
  static constexpr Stream cpu() { return Stream{nullptr, Device::cpu()}; }

  constexpr void* handle() const { return handle_; }
  constexpr Device device() const { return device_; }
  friend bool operator==(const Stream&, const Stream&) = default;

 private:
  constexpr Stream(void* handle, Device device) : handle_(handle), device_(device) {}

  void* handle_;
  Device device_;
};

}  // namespace gemmery
