// SPDX-License-Identifier: Apache-2.0
// Graphs: work recorded from a stream once and replayed with one call. For measurements and tests.
#pragma once

#include <gemmery/stream.hpp>

#include "driver/driver.hpp"

namespace gemmery::driver {

// A graph that can be launched any number of times. What it refers to must outlive its last launch.
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

// Records what is put on the stream from now on. Ending returns the graph; a capture that is not
// ended is ended and dropped.
class GraphCapture {
 public:
  explicit GraphCapture(Stream stream, cuda::CaptureMode mode = cuda::CaptureMode::global);
  ~GraphCapture();
  GraphCapture(const GraphCapture&) = delete;
  GraphCapture& operator=(const GraphCapture&) = delete;

  // Throws Error (launch) where something that happened in between invalidated the capture.
  Graph end();

 private:
  const GpuDevice& device_;
  Stream stream_;
  bool is_open_ = true;
};

}  // namespace gemmery::driver
