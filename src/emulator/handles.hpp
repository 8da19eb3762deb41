// SPDX-License-Identifier: Apache-2.0
// The objects behind the driver API's handles, and the rules of streams and captures.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "emulator/device.hpp"
#include "emulator/module.hpp"
#include "emulator/outcome.hpp"

namespace gemmery::emulator {

// Work on a stream: executed at once, or recorded if the stream is being captured. Throws Refusal,
// Fault, Error.
using Work = std::function<void()>;

// A capture in progress on the stream where it began and on those that joined it by an event.
struct Capture {
  cuda::Stream origin = nullptr;
  cuda::CaptureMode mode = cuda::CaptureMode::global;
  std::thread::id owner;
  bool is_valid = true;
  std::vector<Work> work;
  std::vector<cuda::Stream> streams;
};
using SharedCapture = std::shared_ptr<Capture>;

}  // namespace gemmery::emulator

namespace gemmery::driver::cuda {

struct ContextHandle {
  emulator::EmulatedDevice* device = nullptr;
};

struct StreamHandle {
  emulator::EmulatedDevice* device = nullptr;
  bool is_blocking = true;  // ordered with the legacy stream
  emulator::SharedCapture capture;
};

struct EventHandle {
  bool is_timing = true;
  std::optional<std::chrono::steady_clock::time_point> recorded;
  std::weak_ptr<emulator::Capture> capture;  // the capture that recorded it
};

struct GraphHandle {
  std::vector<emulator::Work> work;
};

struct GraphExecHandle {
  std::vector<emulator::Work> work;
};

struct MemoryPoolHandle {
  emulator::EmulatedDevice* device = nullptr;
  std::uint64_t release_threshold = 0;
  std::uint64_t used = 0, used_peak = 0;  // freed memory is not kept
};

// A kernel on one device.
struct FunctionHandle {
  KernelHandle* kernel = nullptr;
  emulator::EmulatedDevice* device = nullptr;
  std::shared_ptr<const emulator::KernelImage> image;
  int max_dynamic_shared_bytes = 48 * 1024;  // unless the function's attribute is raised
  bool allows_any_cluster = false;
};

struct KernelHandle {
  LibraryHandle* library = nullptr;
  std::string entry;
  std::map<int, std::unique_ptr<FunctionHandle>> functions;  // by ordinal
};

struct LibraryHandle {
  explicit LibraryHandle(std::string_view ptx) : module(ptx) {}
  emulator::Module module;
  std::map<std::string, std::unique_ptr<KernelHandle>, std::less<>> kernels;
};

}  // namespace gemmery::driver::cuda

namespace gemmery::emulator {

// State shared by all functions. `mutex` guards it and the contents of all handles; it is held
// briefly, never while a device executes or decodes.
struct HandleState {
  struct Block {
    cuda::MemoryPool pool = nullptr;
    std::uint64_t bytes = 0;
  };

  std::mutex mutex;
  std::vector<cuda::ContextHandle> contexts;        // by ordinal
  std::vector<cuda::StreamHandle> default_streams;  // by ordinal
  std::set<cuda::Stream> streams;                   // live streams without the default ones
  std::vector<SharedCapture> captures;              // in progress
  std::map<cuda::DevicePointer, Block> blocks;
  std::map<cuda::Library, std::unique_ptr<cuda::LibraryHandle>> libraries;
};
HandleState& handles();

// --- contexts -----------------------------------------------------------------------------------

// This thread's context; nullptr if there is none.
cuda::Context current_context() noexcept;
// Throws Refusal (invalid_context).
EmulatedDevice& current_device();
// Throws Refusal (invalid_device).
EmulatedDevice& device_of(cuda::DeviceOrdinal ordinal);

// --- streams ------------------------------------------------------------------------------------

// The stream of a handle; 0 and 1 are the legacy stream of the current device, 2 that of the
// thread, which is the same here. Throws Refusal (invalid_handle) for an invalid or destroyed
// stream. The caller holds `mutex`.
cuda::StreamHandle& resolve(cuda::Stream handle);

// Executes the work now, or records it. Throws what the work throws, and Refusal by the rules of
// capture.
void put(cuda::Stream handle, Work work);

// Runs recorded work on a stream, or records it there.
void put_all(cuda::Stream handle, const std::vector<Work>& work);

// For calls that a capture cannot record: throws Refusal if one of mode global is in progress (or
// one of this thread), unless this thread has relaxed its mode.
void refuse_in_capture(const char* call);

// For a call on a stream that is being captured: invalidates the capture and throws Refusal.
void refuse_on_captured_stream(cuda::Stream handle, const char* call);

}  // namespace gemmery::emulator
