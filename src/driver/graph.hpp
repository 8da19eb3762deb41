// SPDX-License-Identifier: Apache-2.0
// CUDA graphs: work captured from a stream once and launched with one call. For measurements and
// tests.
#pragma once

#include <gemmery/stream.hpp>

#include "driver/driver.hpp"

namespace gemmery::driver {

// A graph that can be launched any number of times. The memory it refers to must outlive its last
// launch.
class Graph {
 public:
  Graph() noexcept = default;
  Graph(const GpuDevice& device, cuda::GraphExec exec) noexcept : device_(&device), exec_(exec) {}
  ~Graph();
  Graph(Graph&& other) noexcept : device_(other.device_), exec_(other.exec_) {
    other.exec_ = nullptr;
  }
  Graph& operator=(Graph&& other) noexcept;

  void launch(Stream stream) const;

 private:
  const GpuDevice* device_ = nullptr;
  cuda::GraphExec exec_ = nullptr;
};

// Captures the work that is enqueued on the stream from now on. `end` returns the graph; without
// `end` the capture is discarded.
class GraphCapture {
 public:
  explicit GraphCapture(Stream stream, cuda::CaptureMode mode = cuda::CaptureMode::global);
  ~GraphCapture();
  GraphCapture(const GraphCapture&) = delete;
  GraphCapture& operator=(const GraphCapture&) = delete;

  // Throws Error (launch) if the capture was invalidated.
  Graph end();

 private:
  const GpuDevice& device_;
  Stream stream_;
  bool is_open_ = true;
};

}  // namespace gemmery::driver
