// SPDX-License-Identifier: Apache-2.0
// Streams, their capture, and events.
#include "drop_in/runtime/call.hpp"

namespace gemmery::drop_in::runtime {

extern "C" {

// --- streams ------------------------------------------------------------------------------------

Error cudaStreamCreate(cuda::Stream* stream) {
  return call([&] { return driver::cuStreamCreate(stream, cuda::stream_default); });
}

Error cudaStreamCreateWithFlags(cuda::Stream* stream, unsigned flags) {
  return call([&] { return driver::cuStreamCreate(stream, flags); });
}

Error cudaStreamCreateWithPriority(cuda::Stream* stream, unsigned flags, int priority) {
  return call([&] { return driver::cuStreamCreateWithPriority(stream, flags, priority); });
}

Error cudaStreamDestroy(cuda::Stream stream) {
  return call([&] { return driver::cuStreamDestroy_v2(stream); });
}

Error cudaStreamGetPriority(cuda::Stream stream, int* priority) {
  return call([&] { return driver::cuStreamGetPriority(stream, priority); });
}

Error cudaStreamGetFlags(cuda::Stream stream, unsigned* flags) {
  return call([&] { return driver::cuStreamGetFlags(stream, flags); });
}

Error cudaStreamGetId(cuda::Stream stream, unsigned long long* id) {
  return call([&] { return driver::cuStreamGetId(stream, id); });
}

Error cudaStreamGetDevice(cuda::Stream stream, int* device) {
  return call([&] { return driver::cuStreamGetDevice(stream, device); });
}

Error cudaStreamCopyAttributes(cuda::Stream to, cuda::Stream from) {
  return call([&] { return driver::cuStreamCopyAttributes(to, from); });
}

Error cudaStreamSetAttribute(cuda::Stream stream, int attribute, const void* value) {
  return call([&] { return driver::cuStreamSetAttribute(stream, attribute, value); });
}

Error cudaStreamWaitEvent(cuda::Stream stream, cuda::Event event, unsigned flags) {
  return call([&] { return driver::cuStreamWaitEvent(stream, event, flags); });
}

Error cudaStreamAddCallback(cuda::Stream stream, cuda::StreamCallback callback, void* data,
                            unsigned flags) {
  return call([&] { return driver::cuStreamAddCallback(stream, callback, data, flags); });
}

Error cudaStreamSynchronize(cuda::Stream stream) {
  return call([&] { return driver::cuStreamSynchronize(stream); });
}

Error cudaStreamQuery(cuda::Stream stream) {
  return call([&] { return driver::cuStreamQuery(stream); });
}

Error cudaStreamAttachMemAsync(cuda::Stream stream, void* pointer, std::size_t bytes,
                               unsigned flags) {
  return call([&] {
    return driver::cuStreamAttachMemAsync(stream, device_pointer(pointer), bytes, flags);
  });
}

// --- capture ------------------------------------------------------------------------------------

Error cudaStreamBeginCapture(cuda::Stream stream, cuda::CaptureMode mode) {
  return call([&] { return driver::cuStreamBeginCapture_v2(stream, mode); });
}

Error cudaStreamEndCapture(cuda::Stream stream, cuda::Graph* graph) {
  return call([&] { return driver::cuStreamEndCapture(stream, graph); });
}

Error cudaStreamIsCapturing(cuda::Stream stream, cuda::CaptureStatus* status) {
  return call([&] { return driver::cuStreamIsCapturing(stream, status); });
}

Error cudaThreadExchangeStreamCaptureMode(cuda::CaptureMode* mode) {
  return call([&] { return driver::cuThreadExchangeStreamCaptureMode(mode); });
}

Error cudaStreamGetCaptureInfo(cuda::Stream stream, cuda::CaptureStatus* status,
                               unsigned long long* id, cuda::Graph* graph,
                               const cuda::GraphNode** dependencies, const void** edges,
                               std::size_t* count) {
  return call([&] {
    std::uint64_t number = 0;
    const cuda::Result result = driver::cuStreamGetCaptureInfo_v3(stream, status, &number, graph,
                                                                  dependencies, edges, count);
    if (id != nullptr) *id = number;
    return result;
  });
}

// --- events -------------------------------------------------------------------------------------

Error cudaEventCreate(cuda::Event* event) {
  return call([&] { return driver::cuEventCreate(event, cuda::event_default); });
}

Error cudaEventCreateWithFlags(cuda::Event* event, unsigned flags) {
  return call([&] { return driver::cuEventCreate(event, flags); });
}

Error cudaEventDestroy(cuda::Event event) {
  return call([&] { return driver::cuEventDestroy_v2(event); });
}

Error cudaEventRecord(cuda::Event event, cuda::Stream stream) {
  return call([&] { return driver::cuEventRecordWithFlags(event, stream, 0); });
}

Error cudaEventRecordWithFlags(cuda::Event event, cuda::Stream stream, unsigned flags) {
  return call([&] { return driver::cuEventRecordWithFlags(event, stream, flags); });
}

Error cudaEventQuery(cuda::Event event) {
  return call([&] { return driver::cuEventQuery(event); });
}

Error cudaEventSynchronize(cuda::Event event) {
  return call([&] { return driver::cuEventSynchronize(event); });
}

Error cudaEventElapsedTime(float* milliseconds, cuda::Event start, cuda::Event end) {
  return call([&] { return driver::cuEventElapsedTime_v2(milliseconds, start, end); });
}

}  // extern "C"
}  // namespace gemmery::drop_in::runtime
