// SPDX-License-Identifier: Apache-2.0
// The objects behind the driver API's handles, and the rules of streams and captures.
#pragma once

#include <any>
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

namespace gemmery::driver::cuda {
struct GraphHandle;
}

namespace gemmery::emulator {

// Throws Refusal, Fault, Error.
using Work = std::function<void()>;

// The kinds of a graph's nodes, with the driver's numbers (CUgraphNodeType).
enum class NodeKind : int {
  kernel = 0,
  copy = 1,
  fill = 2,
  host_call = 3,
  graph = 4,
  empty = 5,
  event_wait = 6,
  event_record = 7,
  allocation = 10,
  free = 11,
};

// Work on a stream: executed at once, or recorded as a node if the stream is being captured.
struct Task {
  Task(NodeKind what, Work to_do, std::any made_of = {})
      : kind(what), work(std::move(to_do)), parameters(std::move(made_of)) {}

  NodeKind kind = NodeKind::copy;
  Work work;
  std::any parameters = {};  // what whoever asks for them expects: a KernelTask, for example
  // False for what must not lock the device: calls of the host, other graphs.
  bool holds_device = true;
};

// A capture in progress on the stream where it began and on those that joined it by an event.
struct Capture {
  cuda::Stream origin = nullptr;
  cuda::CaptureMode mode = cuda::CaptureMode::global;
  std::thread::id owner;
  bool is_valid = true;
  std::unique_ptr<cuda::GraphHandle> graph;
  std::vector<cuda::Stream> streams;
};
using SharedCapture = std::shared_ptr<Capture>;

}  // namespace gemmery::emulator

namespace gemmery::driver::cuda {

struct GraphNodeHandle;
struct GraphHandle;

struct ContextHandle {
  emulator::EmulatedDevice* device = nullptr;
};

struct StreamHandle {
  emulator::EmulatedDevice* device = nullptr;
  bool is_blocking = true;  // ordered with the legacy stream
  emulator::SharedCapture capture;
  std::vector<GraphNodeHandle*> captured;  // the nodes that the next one depends on
  int priority = 0;
};

struct EventHandle {
  bool is_timing = true;
  std::optional<std::chrono::steady_clock::time_point> recorded;
  std::weak_ptr<emulator::Capture> capture;  // the capture that recorded it
  std::vector<GraphNodeHandle*> captured;    // the nodes of that capture which it stands for
};

struct GraphNodeHandle {
  GraphHandle* graph = nullptr;
  emulator::Task task;
  std::vector<GraphNodeHandle*> dependencies = {};
  const GraphNodeHandle* original = nullptr;  // of a node of a clone
};

struct GraphHandle {
  std::vector<std::unique_ptr<GraphNodeHandle>> nodes;  // in the order in which they were added

  GraphNodeHandle& add(emulator::Task task, std::vector<GraphNodeHandle*> dependencies);
};

struct GraphExecHandle {
  struct Step {
    const GraphNodeHandle* node = nullptr;  // only compared: it may be gone
    emulator::Task task;
    bool is_enabled = true;
  };
  std::vector<Step> steps;  // in an order that the dependencies allow
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
  std::set<const void*> kernels;  // live handles of kernels
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
void put(cuda::Stream handle, Task task);

// An order of a graph's nodes that its dependencies allow: that in which they were added, if
// possible. Throws Refusal (invalid_value) for a cycle.
std::vector<const cuda::GraphNodeHandle*> in_order(const cuda::GraphHandle& graph);

// For calls that a capture cannot record: throws Refusal if one of mode global is in progress (or
// one of this thread), unless this thread has relaxed its mode.
void refuse_in_capture(const char* call);

// For a call on a stream that is being captured: invalidates the capture and throws Refusal.
void refuse_on_captured_stream(cuda::Stream handle, const char* call);

// --- code and launches --------------------------------------------------------------------------

// The parameters of a kernel's node.
struct KernelTask {
  cuda::FunctionHandle* function = nullptr;
  KernelLaunch launch;
};

// Throws Refusal (invalid_ptx).
cuda::Library load_library(std::string_view ptx);
// Throws Refusal (invalid_handle).
void unload_library(cuda::Library library);
// Throws Refusal (not_found).
cuda::Kernel find_kernel(cuda::LibraryHandle& library, std::string_view name);
// The kernel on a device; decoded now if necessary. Throws Refusal (no_binary_for_gpu) and what
// Module::image throws.
cuda::FunctionHandle& function_on(cuda::KernelHandle& kernel, EmulatedDevice& device);
int attribute_of(const cuda::FunctionHandle& function, cuda::FunctionAttribute attribute);
void set_attribute(cuda::FunctionHandle& function, cuda::FunctionAttribute attribute, int value);

// Copies the arguments and checks the shape. Throws Refusal.
Task kernel_task(const cuda::LaunchConfig& config, cuda::FunctionHandle& function,
                 void** parameters);
// The same for a launch that is complete.
Task kernel_task(KernelTask made);

// Whoever collects the faults of all launches; without one a launch ends at its first fault.
class FaultSink {
 public:
  virtual ~FaultSink() = default;
  virtual void begin(const KernelLaunch& launch) = 0;
  // Called after each launch. `ended_early`: a block could not continue.
  virtual void take(const std::vector<CollectedFault>& faults, const LaunchStatistics& statistics,
                    std::uint64_t seed) = 0;
};
void set_fault_sink(FaultSink* sink) noexcept;

// --- memory -------------------------------------------------------------------------------------

cuda::DevicePointer allocate(cuda::MemoryPoolHandle& pool, std::uint64_t bytes);
// Throws Refusal (invalid_value) for an address that is not the start of an allocation.
void free_block(cuda::DevicePointer pointer);
[[noreturn]] void refuse_range(const GlobalMemory& memory, const std::string& name,
                               const char* what, std::uint64_t address, std::uint64_t bytes);

}  // namespace gemmery::emulator
