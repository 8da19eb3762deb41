// SPDX-License-Identifier: Apache-2.0
// Streams, captures, graphs, events. Work is executed when it is enqueued, so only the rules of
// streams are implemented; nothing ever waits.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "emulator/handles.hpp"
#include "emulator/table.hpp"

namespace gemmery::emulator {
namespace {

using Clock = std::chrono::steady_clock;

thread_local cuda::CaptureMode thread_mode = cuda::CaptureMode::global;

bool is_legacy(cuda::Stream handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle) <= 2;
}

// Refuses an invalid handle or that of a destroyed stream. Unlike other handles, streams are always
// checked, since callers pass streams of other libraries.
[[noreturn]] void refuse_handle(cuda::Stream handle) {
  throw Refusal{cuda::Result::invalid_handle,
                fmt::format("{:#x} is no stream of an emulated device, or one that was destroyed",
                            reinterpret_cast<std::uintptr_t>(handle))};
}

// The capture of a stream that the legacy stream would have to wait for; nullptr if there is none.
// The caller holds `mutex`.
Capture* find_blocking_capture(const EmulatedDevice& device) {
  for (const SharedCapture& capture : handles().captures) {
    for (const cuda::Stream stream : capture->streams) {
      if (stream->device == &device && stream->is_blocking) return capture.get();
    }
  }
  return nullptr;
}

// The stream, and whether its work is to be recorded. The caller holds `mutex`.
cuda::StreamHandle& open_for_work(cuda::Stream handle) {
  cuda::StreamHandle& stream = resolve(handle);
  if (is_legacy(handle)) {
    if (Capture* const capture = find_blocking_capture(*stream.device)) {
      capture->is_valid = false;
      throw Refusal{cuda::Result::stream_capture_implicit, {}};
    }
  }
  if (stream.capture != nullptr && !stream.capture->is_valid)
    throw Refusal{cuda::Result::stream_capture_invalidated, {}};
  return stream;
}

void forget(const SharedCapture& capture) {
  for (const cuda::Stream stream : capture->streams) {
    stream->capture = nullptr;
    stream->captured.clear();
  }
  std::erase(handles().captures, capture);
}

void begin_capture(cuda::Stream handle, cuda::CaptureMode mode) {
  const std::lock_guard lock(handles().mutex);
  if (is_legacy(handle))
    throw Refusal{cuda::Result::stream_capture_unsupported, "the legacy stream is not captured"};
  cuda::StreamHandle& stream = resolve(handle);
  if (stream.capture != nullptr)
    throw Refusal{cuda::Result::illegal_state, "the stream is being captured already"};
  stream.capture = std::make_shared<Capture>(Capture{.origin = handle,
                                                     .mode = mode,
                                                     .owner = std::this_thread::get_id(),
                                                     .graph = std::make_unique<cuda::GraphHandle>(),
                                                     .streams = {handle}});
  handles().captures.push_back(stream.capture);
}

void end_capture(cuda::Stream handle, cuda::Graph* graph) {
  *graph = nullptr;
  SharedCapture capture;  // ends after the lock: its nodes may free memory
  const std::lock_guard lock(handles().mutex);
  if (!is_legacy(handle)) capture = resolve(handle).capture;
  if (capture == nullptr || capture->origin != handle)
    throw Refusal{cuda::Result::illegal_state, "no capture began on this stream"};
  const bool is_owner = capture->owner == std::this_thread::get_id();
  if (capture->mode != cuda::CaptureMode::relaxed && !is_owner)
    throw Refusal{cuda::Result::stream_capture_wrong_thread, {}};
  forget(capture);
  if (!capture->is_valid) throw Refusal{cuda::Result::stream_capture_invalidated, {}};
  *graph = capture->graph.release();
}

void merge(std::vector<cuda::GraphNodeHandle*>& nodes,
           const std::vector<cuda::GraphNodeHandle*>& more) {
  for (cuda::GraphNodeHandle* const node : more) {
    if (std::ranges::find(nodes, node) == nodes.end()) nodes.push_back(node);
  }
}

// A stream that waits for an event of a capture joins the capture.
void wait_for_event(cuda::Stream handle, cuda::EventHandle& event) {
  const std::lock_guard lock(handles().mutex);
  cuda::StreamHandle& stream = open_for_work(handle);
  const SharedCapture capture = event.capture.lock();
  if (capture == nullptr) return;
  if (stream.capture == capture) return merge(stream.captured, event.captured);
  const bool is_under_way =
      std::ranges::find(handles().captures, capture) != handles().captures.end();
  if (!is_under_way) return;
  if (stream.capture != nullptr || is_legacy(handle)) {
    capture->is_valid = false;
    throw Refusal{cuda::Result::stream_capture_unsupported,
                  "a stream of one capture cannot wait for another capture"};
  }
  stream.capture = capture;
  stream.captured = event.captured;
  capture->streams.push_back(handle);
}

void record_event(cuda::EventHandle& event, cuda::Stream handle) {
  const std::lock_guard lock(handles().mutex);
  const cuda::StreamHandle& stream = open_for_work(handle);
  event.capture = stream.capture;
  event.captured = stream.captured;
  event.recorded.reset();
  if (stream.capture == nullptr) event.recorded = Clock::now();
}

double elapsed_milliseconds(const cuda::EventHandle& start, const cuda::EventHandle& end) {
  const std::lock_guard lock(handles().mutex);
  if (!start.is_timing || !end.is_timing || !start.recorded || !end.recorded) {
    throw Refusal{cuda::Result::invalid_handle,
                  "both events must measure time and be recorded outside of a capture"};
  }
  return std::chrono::duration<double, std::milli>(*end.recorded - *start.recorded).count();
}

}  // namespace

cuda::StreamHandle& resolve(cuda::Stream handle) {
  if (!is_legacy(handle)) {
    if (!handles().streams.contains(handle)) refuse_handle(handle);
    return *handle;
  }
  return handles().default_streams[static_cast<std::size_t>(current_device().ordinal)];
}

void put(cuda::Stream handle, Task task) {
  EmulatedDevice* device = nullptr;
  {
    const std::lock_guard lock(handles().mutex);
    cuda::StreamHandle& stream = open_for_work(handle);
    if (stream.capture != nullptr) {
      stream.captured = {&stream.capture->graph->add(std::move(task), stream.captured)};
      return;
    }
    device = stream.device;
  }
  if (!task.holds_device) return task.work();
  const std::lock_guard lock(device->executing);
  task.work();
}

std::vector<const cuda::GraphNodeHandle*> in_order(const cuda::GraphHandle& graph) {
  std::vector<const cuda::GraphNodeHandle*> order;
  std::set<const cuda::GraphNodeHandle*> placed;
  while (order.size() < graph.nodes.size()) {
    const std::size_t before = order.size();
    for (const auto& node : graph.nodes) {
      const auto is_placed = [&](const auto* each) { return placed.contains(each); };
      if (is_placed(node.get()) || !std::ranges::all_of(node->dependencies, is_placed)) continue;
      order.push_back(node.get());
      placed.insert(node.get());
    }
    if (order.size() == before)
      throw Refusal{cuda::Result::invalid_value, "the graph's dependencies form a cycle"};
  }
  return order;
}

void refuse_in_capture(const char* call) {
  if (thread_mode == cuda::CaptureMode::relaxed) return;
  const std::lock_guard lock(handles().mutex);
  for (const SharedCapture& capture : handles().captures) {
    const bool is_own = capture->owner == std::this_thread::get_id();
    const bool is_everyones =
        capture->mode == cuda::CaptureMode::global && thread_mode == cuda::CaptureMode::global;
    if (capture->mode == cuda::CaptureMode::relaxed || (!is_own && !is_everyones)) continue;
    capture->is_valid = false;
    throw Refusal{cuda::Result::stream_capture_unsupported,
                  std::string(call) + " while a stream is being captured"};
  }
}

void refuse_on_captured_stream(cuda::Stream handle, const char* call) {
  const std::lock_guard lock(handles().mutex);
  const cuda::StreamHandle& stream = open_for_work(handle);
  if (stream.capture == nullptr) return;
  stream.capture->is_valid = false;
  throw Refusal{cuda::Result::stream_capture_unsupported,
                std::string(call) + " on a stream that is being captured"};
}

namespace calls {

// --- streams ------------------------------------------------------------------------------------

cuda::Result cuStreamCreate(cuda::Stream* stream, unsigned flags) {
  return answer([&] {
    const bool is_blocking = (flags & cuda::stream_non_blocking) == 0;
    auto made = std::make_unique<cuda::StreamHandle>(cuda::StreamHandle{.device = &current_device(),
                                                                        .is_blocking = is_blocking,
                                                                        .capture = nullptr,
                                                                        .captured = {}});
    const std::lock_guard lock(handles().mutex);
    handles().streams.insert(made.get());
    *stream = made.release();
  });
}

cuda::Result cuStreamDestroy(cuda::Stream stream) {
  return answer([&] {
    if (is_legacy(stream)) throw Refusal{cuda::Result::invalid_handle, {}};
    SharedCapture capture;  // ends after the lock: its nodes may free memory
    const std::lock_guard lock(handles().mutex);
    capture = resolve(stream).capture;
    if (capture != nullptr && capture->origin == stream) forget(capture);
    if (capture != nullptr) std::erase(capture->streams, stream);  // others go on
    handles().streams.erase(stream);
    delete stream;
  });
}

cuda::Result cuStreamSynchronize(cuda::Stream stream) {
  return answer([&] {
    refuse_on_captured_stream(stream, "cuStreamSynchronize");
    // Work of other threads on the device ends first.
    EmulatedDevice* device = nullptr;
    {
      const std::lock_guard lock(handles().mutex);
      device = resolve(stream).device;
    }
    const std::lock_guard done(device->executing);
  });
}

cuda::Result cuStreamQuery(cuda::Stream stream) {
  return answer([&] { refuse_on_captured_stream(stream, "cuStreamQuery"); });
}

cuda::Result cuStreamWaitEvent(cuda::Stream stream, cuda::Event event, unsigned) {
  return answer([&] {
    if (event == nullptr) throw Refusal{cuda::Result::invalid_handle, {}};
    wait_for_event(stream, *event);
  });
}

// --- captures and graphs ------------------------------------------------------------------------

cuda::Result cuStreamIsCapturing(cuda::Stream stream, cuda::CaptureStatus* status) {
  return answer([&] {
    const std::lock_guard lock(handles().mutex);
    const cuda::StreamHandle& resolved = resolve(stream);
    if (is_legacy(stream) && find_blocking_capture(*resolved.device) != nullptr)
      throw Refusal{cuda::Result::stream_capture_implicit, {}};
    *status = cuda::CaptureStatus::none;
    if (resolved.capture != nullptr) {
      *status = resolved.capture->is_valid ? cuda::CaptureStatus::active
                                           : cuda::CaptureStatus::invalidated;
    }
  });
}

cuda::Result cuThreadExchangeStreamCaptureMode(cuda::CaptureMode* mode) {
  std::swap(thread_mode, *mode);
  return cuda::Result::success;
}

cuda::Result cuStreamBeginCapture(cuda::Stream stream, cuda::CaptureMode mode) {
  return answer([&] { begin_capture(stream, mode); });
}

cuda::Result cuStreamEndCapture(cuda::Stream stream, cuda::Graph* graph) {
  return answer([&] { end_capture(stream, graph); });
}

cuda::Result cuGraphInstantiateWithFlags(cuda::GraphExec* exec, cuda::Graph graph,
                                         unsigned long long) {
  return answer([&] {
    if (graph == nullptr) throw Refusal{cuda::Result::invalid_value, {}};
    auto made = std::make_unique<cuda::GraphExecHandle>();
    for (const cuda::GraphNodeHandle* const node : in_order(*graph))
      made->steps.push_back({node, node->task});
    *exec = made.release();
  });
}

cuda::Result cuGraphLaunch(cuda::GraphExec exec, cuda::Stream stream) {
  return answer([&] {
    if (exec == nullptr) throw Refusal{cuda::Result::invalid_value, {}};
    for (const cuda::GraphExecHandle::Step& step : exec->steps) {
      if (step.is_enabled) put(stream, step.task);
    }
  });
}

cuda::Result cuGraphExecDestroy(cuda::GraphExec exec) {
  delete exec;
  return cuda::Result::success;
}

cuda::Result cuGraphDestroy(cuda::Graph graph) {
  delete graph;
  return cuda::Result::success;
}

// --- events -------------------------------------------------------------------------------------

cuda::Result cuEventCreate(cuda::Event* event, unsigned flags) {
  return answer([&] {
    current_device();
    *event = new cuda::EventHandle{.is_timing = (flags & cuda::event_disable_timing) == 0,
                                   .recorded = std::nullopt,
                                   .capture = {},
                                   .captured = {}};
  });
}

cuda::Result cuEventDestroy(cuda::Event event) {
  delete event;
  return cuda::Result::success;
}

cuda::Result cuEventRecord(cuda::Event event, cuda::Stream stream) {
  return answer([&] { record_event(*event, stream); });
}

cuda::Result cuEventSynchronize(cuda::Event) { return cuda::Result::success; }

cuda::Result cuEventElapsedTime(float* milliseconds, cuda::Event start, cuda::Event end) {
  return answer([&] { *milliseconds = static_cast<float>(elapsed_milliseconds(*start, *end)); });
}

}  // namespace calls
}  // namespace gemmery::emulator

namespace gemmery::driver::cuda {

GraphNodeHandle& GraphHandle::add(emulator::Task task, std::vector<GraphNodeHandle*> dependencies) {
  nodes.push_back(std::make_unique<GraphNodeHandle>(GraphNodeHandle{
      .graph = this, .task = std::move(task), .dependencies = std::move(dependencies)}));
  return *nodes.back();
}

}  // namespace gemmery::driver::cuda
