// SPDX-License-Identifier: Apache-2.0
// The scratch memory of a prepared launch: reserved once, used by one launch after another on any
// streams.
#pragma once

#include <gemmery/buffer.hpp>
#include <gemmery/kernel.hpp>

#include <cstddef>
#include <optional>

#include "driver/driver.hpp"
#include "driver/stream.hpp"

namespace gemmery::runtime {

class LaunchWorkspace {
 public:
  // Allocates this many bytes on a device, all zero; 0 bytes are allowed.
  LaunchWorkspace(Device device, std::size_t bytes);
  ~LaunchWorkspace();
  LaunchWorkspace(const LaunchWorkspace&) = delete;
  LaunchWorkspace& operator=(const LaunchWorkspace&) = delete;

  Workspace lend() const noexcept { return {memory_.data(), memory_.bytes()}; }

  // Calls `launch`, which enqueues work that uses the memory, and orders it after earlier uses on
  // other streams.
  template <class Launch>
  void use(Stream stream, Launch&& launch) {
    const bool is_ordered = begin(stream);
    launch();
    if (is_ordered) end(stream);
  }

 private:
  // True if launches on this stream are ordered with others: not during a capture.
  bool begin(Stream stream);
  void end(Stream stream);

  const driver::GpuDevice* gpu_ = nullptr;  // nullptr if nothing is reserved, or on the CPU
  Buffer memory_;
  std::optional<driver::Event> last_use_;
  std::optional<Stream> last_stream_;
};

}  // namespace gemmery::runtime
