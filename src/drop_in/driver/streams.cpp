// SPDX-License-Identifier: Apache-2.0
// Streams and events: what the emulator's own functions lack.
#include "drop_in/driver/exports.hpp"
#include "drop_in/driver/state.hpp"
#include "emulator/table.hpp"

namespace gemmery::driver {

using drop_in::answer;
using drop_in::answer_on_device;
using drop_in::require;
using emulator::handles;
using emulator::Refusal;

namespace {

// Throws Refusal with the code that an emulator's function returned.
void expect_success(cuda::Result result) {
  if (result != cuda::Result::success) throw Refusal{result, {}};
}

cuda::Result read_capture(cuda::Stream stream, cuda::CaptureStatus* status, std::uint64_t* id,
                          cuda::Graph* graph, const cuda::GraphNode** dependencies,
                          std::size_t* count) {
  return answer("cuStreamGetCaptureInfo", [&] {
    expect_success(emulator::calls::cuStreamIsCapturing(stream, &require(status)));
    if (*status == cuda::CaptureStatus::none) return;
    const std::lock_guard lock(handles().mutex);
    const cuda::StreamHandle& captured = emulator::resolve(stream);
    if (id != nullptr) *id = reinterpret_cast<std::uintptr_t>(captured.capture.get());
    if (graph != nullptr) *graph = captured.capture->graph.get();
    if (dependencies != nullptr) *dependencies = captured.captured.data();
    if (count != nullptr) *count = captured.captured.size();
  });
}

}  // namespace

extern "C" {

// --- streams ------------------------------------------------------------------------------------

cuda::Result cuStreamCreateWithPriority(cuda::Stream* stream, unsigned flags, int priority) {
  return answer("cuStreamCreateWithPriority", [&] {
    expect_success(emulator::calls::cuStreamCreate(&require(stream), flags));
    const std::lock_guard lock(handles().mutex);
    (*stream)->priority = priority;
  });
}

cuda::Result cuStreamGetPriority(cuda::Stream stream, int* priority) {
  return answer("cuStreamGetPriority", [&] {
    const std::lock_guard lock(handles().mutex);
    require(priority) = emulator::resolve(stream).priority;
  });
}

cuda::Result cuStreamGetFlags(cuda::Stream stream, unsigned* flags) {
  return answer("cuStreamGetFlags", [&] {
    const std::lock_guard lock(handles().mutex);
    require(flags) =
        emulator::resolve(stream).is_blocking ? cuda::stream_default : cuda::stream_non_blocking;
  });
}

cuda::Result cuStreamGetId(cuda::Stream stream, unsigned long long* id) {
  return answer("cuStreamGetId", [&] {
    const std::lock_guard lock(handles().mutex);
    require(id) = reinterpret_cast<std::uintptr_t>(&emulator::resolve(stream));
  });
}

cuda::Result cuStreamGetCtx(cuda::Stream stream, cuda::Context* context) {
  return answer("cuStreamGetCtx", [&] {
    const std::lock_guard lock(handles().mutex);
    const auto ordinal = static_cast<std::size_t>(emulator::resolve(stream).device->ordinal);
    require(context) = &handles().contexts[ordinal];
  });
}

cuda::Result cuStreamGetDevice(cuda::Stream stream, cuda::DeviceOrdinal* device) {
  return answer("cuStreamGetDevice", [&] {
    const std::lock_guard lock(handles().mutex);
    require(device) = emulator::resolve(stream).device->ordinal;
  });
}

cuda::Result cuStreamSynchronize(cuda::Stream stream) {
  return answer_on_device("cuStreamSynchronize",
                          [&] { expect_success(emulator::calls::cuStreamSynchronize(stream)); });
}

cuda::Result cuStreamQuery(cuda::Stream stream) {
  return answer_on_device("cuStreamQuery",
                          [&] { expect_success(emulator::calls::cuStreamQuery(stream)); });
}

// Hints, which the emulator needs not.
cuda::Result cuStreamAttachMemAsync(cuda::Stream, cuda::DevicePointer, std::size_t, unsigned) {
  return cuda::Result::success;
}
cuda::Result cuStreamCopyAttributes(cuda::Stream, cuda::Stream) { return cuda::Result::success; }
cuda::Result cuStreamSetAttribute(cuda::Stream, int, const void*) { return cuda::Result::success; }

cuda::Result cuStreamGetCaptureInfo_v2(cuda::Stream stream, cuda::CaptureStatus* status,
                                       std::uint64_t* id, cuda::Graph* graph,
                                       const cuda::GraphNode** dependencies, std::size_t* count) {
  return read_capture(stream, status, id, graph, dependencies, count);
}

cuda::Result cuStreamGetCaptureInfo_v3(cuda::Stream stream, cuda::CaptureStatus* status,
                                       std::uint64_t* id, cuda::Graph* graph,
                                       const cuda::GraphNode** dependencies, const void** edges,
                                       std::size_t* count) {
  if (edges != nullptr) *edges = nullptr;  // all of the ordinary kind
  return read_capture(stream, status, id, graph, dependencies, count);
}

// --- events -------------------------------------------------------------------------------------

cuda::Result cuEventQuery(cuda::Event event) {
  return answer_on_device("cuEventQuery", [&] { require(event); });
}

cuda::Result cuEventSynchronize(cuda::Event event) {
  return answer_on_device("cuEventSynchronize", [&] { require(event); });
}

cuda::Result cuEventRecordWithFlags(cuda::Event event, cuda::Stream stream, unsigned) {
  return answer("cuEventRecord",
                [&] { expect_success(emulator::calls::cuEventRecord(&require(event), stream)); });
}

}  // extern "C"
}  // namespace gemmery::driver
