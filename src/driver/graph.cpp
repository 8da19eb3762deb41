// SPDX-License-Identifier: Apache-2.0
// Capture, instantiation and replay of graphs.
#include "driver/graph.hpp"

#include <utility>

namespace gemmery::driver {

Graph::~Graph() {
  if (exec_ != nullptr && !is_forked_after_use()) device_->api().cuGraphExecDestroy(exec_);
}

Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(exec_, other.exec_);
  return *this;
}

void Graph::launch(Stream stream) const {
  const ScopedContext current(*device_);
  check(device_->api(), device_->api().cuGraphLaunch(exec_, stream_handle(stream)),
        "cuGraphLaunch");
}

GraphCapture::GraphCapture(Stream stream, cuda::CaptureMode mode)
    : device_(open_device(stream.device())), stream_(stream) {
  const ScopedContext current(device_);
  check(device_.api(), device_.api().cuStreamBeginCapture(stream_handle(stream_), mode),
        "cuStreamBeginCapture");
}

GraphCapture::~GraphCapture() {
  if (!is_open_) return;
  cuda::Graph dropped = nullptr;
  device_.api().cuStreamEndCapture(stream_handle(stream_), &dropped);
  if (dropped != nullptr) device_.api().cuGraphDestroy(dropped);
}

Graph GraphCapture::end() {
  const ScopedContext current(device_);
  const DriverApi& api = device_.api();
  is_open_ = false;
  cuda::Graph recorded = nullptr;
  check(api, api.cuStreamEndCapture(stream_handle(stream_), &recorded), "cuStreamEndCapture");
  cuda::GraphExec exec = nullptr;
  const cuda::Result result = api.cuGraphInstantiateWithFlags(&exec, recorded, 0);
  api.cuGraphDestroy(recorded);
  check(api, result, "cuGraphInstantiateWithFlags");
  return Graph(device_, exec);
}

}  // namespace gemmery::driver
