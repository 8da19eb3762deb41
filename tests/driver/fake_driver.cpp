// SPDX-License-Identifier: Apache-2.0
// Work is executed at once when it is enqueued, or recorded if the stream is being captured.
#include "tests/driver/fake_driver.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace gemmery::driver::cuda {

struct ContextHandle {
  int device = 0;
};
struct GraphHandle {
  std::vector<std::function<void()>> work;
};
struct GraphExecHandle {
  std::vector<std::function<void()>> work;
};
struct StreamHandle {
  int device = 0;
  CaptureStatus capture = CaptureStatus::none;
  CaptureMode mode = CaptureMode::global;
  GraphHandle* graph = nullptr;
};
struct EventHandle {
  bool is_recorded = false;
};
struct MemoryPoolHandle {
  std::uint64_t release_threshold = 0;
  std::uint64_t reserved = 0, reserved_peak = 0, used = 0, used_peak = 0;
};
struct LibraryHandle {
  std::string bytes;
};
struct KernelHandle {
  std::string entry;
  int max_dynamic_shared_bytes = 0;
};
struct FunctionHandle {
  std::string entry;
  int device = 0;
};

}  // namespace gemmery::driver::cuda

namespace gemmery::tests {
namespace {

using namespace driver::cuda;
constexpr int device_count = 2;
constexpr std::size_t memory_bytes = std::size_t{1} << 30;

struct Definition {
  std::size_t parameter_bytes = 0;
  FakeKernel run;
};

struct State {
  std::recursive_mutex mutex;
  ContextHandle contexts[device_count] = {{0}, {1}};
  StreamHandle default_streams[device_count] = {{0}, {1}};
  std::map<std::string, Definition> kernels;
  std::map<std::string, Result> failures;
  std::map<DevicePointer, std::pair<MemoryPoolHandle*, std::size_t>> allocations;
  int global_captures = 0;
  FakeCounts counts;
};

State& state() {
  static State* const instance = new State;
  return *instance;
}
using Lock = std::lock_guard<std::recursive_mutex>;

thread_local std::vector<Context> contexts;
thread_local CaptureMode thread_mode = CaptureMode::global;

Context current() { return contexts.empty() ? nullptr : contexts.back(); }

Result take_failure(const char* function) {
  State& all = state();
  const Lock lock(all.mutex);
  const auto found = all.failures.find(function);
  if (found == all.failures.end()) return Result::success;
  const Result result = found->second;
  all.failures.erase(found);
  return result;
}

#define FAIL_WHERE_ASKED(function) \
  if (const Result asked = take_failure(#function); asked != Result::success) return asked

StreamHandle* resolve(driver::cuda::Stream stream) {
  if (stream != nullptr) return stream;
  return current() == nullptr ? nullptr : &state().default_streams[current()->device];
}

// Refuses a call that a capture in progress forbids, unless this thread has relaxed its mode.
Result refuse_where_captured() {
  State& all = state();
  const Lock lock(all.mutex);
  if (all.global_captures == 0 || thread_mode == CaptureMode::relaxed) return Result::success;
  ++all.counts.calls_refused_in_capture;
  return Result::stream_capture_unsupported;
}

Result put(driver::cuda::Stream handle, std::function<void()> work) {
  const Lock lock(state().mutex);
  if (current() == nullptr) return Result::invalid_context;
  StreamHandle* const stream = resolve(handle);
  if (stream->capture == CaptureStatus::invalidated) return Result::stream_capture_invalidated;
  if (stream->capture == CaptureStatus::active) {
    stream->graph->work.push_back(std::move(work));
  } else {
    work();
  }
  return Result::success;
}

// --- the functions ------------------------------------------------------------------------------

Result init(unsigned) { return Result::success; }
Result driver_version(int* version) {
  *version = 13000;
  return Result::success;
}
Result error_name(Result error, const char** text) {
  *text = error == Result::out_of_memory ? "FAKE_OUT_OF_MEMORY" : "FAKE_ERROR";
  return Result::success;
}
Result error_string(Result, const char** text) {
  *text = "as the test asked";
  return Result::success;
}
Result get_device_count(int* count) {
  *count = device_count;
  return Result::success;
}
Result get_device(DeviceOrdinal* device, int index) {
  *device = index;
  return Result::success;
}
Result device_name(char* name, int length, DeviceOrdinal) {
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(length));
  return Result::success;
}
Result device_attribute(int* value, DeviceAttribute attribute, DeviceOrdinal) {
  switch (attribute) {
    case DeviceAttribute::clock_rate_khz:
      *value = 1'980'000;
      break;
    case DeviceAttribute::multiprocessor_count:
      *value = 132;
      break;
    case DeviceAttribute::memory_clock_rate_khz:
      *value = 3'201'000;
      break;
    case DeviceAttribute::memory_bus_width_bits:
      *value = 6144;
      break;
    case DeviceAttribute::l2_cache_bytes:
      *value = 60 << 20;
      break;
    case DeviceAttribute::compute_capability_major:
      *value = 9;
      break;
    case DeviceAttribute::compute_capability_minor:
      *value = 0;
      break;
    case DeviceAttribute::max_shared_bytes_per_multiprocessor:
      *value = 228 << 10;
      break;
    case DeviceAttribute::max_shared_bytes_per_block_optin:
      *value = 227 << 10;
      break;
    case DeviceAttribute::memory_pools_supported:
      *value = 1;
      break;
  }
  return Result::success;
}
Result total_memory(std::size_t* bytes, DeviceOrdinal) {
  *bytes = memory_bytes;
  return Result::success;
}
Result memory_info(std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = *total_bytes = memory_bytes;
  return Result::success;
}
Result retain(Context* context, DeviceOrdinal device) {
  *context = &state().contexts[device];
  return Result::success;
}
Result get_current(Context* context) {
  *context = current();
  return Result::success;
}
Result set_current(Context context) {
  if (!contexts.empty()) contexts.pop_back();
  if (context != nullptr) contexts.push_back(context);
  return Result::success;
}
Result push(Context context) {
  const Lock lock(state().mutex);
  ++state().counts.context_pushes;
  contexts.push_back(context);
  return Result::success;
}
Result pop(Context* context) {
  *context = current();
  if (!contexts.empty()) contexts.pop_back();
  return Result::success;
}

Result create_stream(driver::cuda::Stream* stream, unsigned) {
  FAIL_WHERE_ASKED(cuStreamCreate);
  if (current() == nullptr) return Result::invalid_context;
  *stream = new StreamHandle{.device = current()->device};
  return Result::success;
}
Result destroy_stream(driver::cuda::Stream stream) {
  delete stream;
  return Result::success;
}
Result synchronize_stream(driver::cuda::Stream) {
  FAIL_WHERE_ASKED(cuStreamSynchronize);
  return refuse_where_captured();
}
Result query_stream(driver::cuda::Stream) { return Result::success; }
Result wait_event(driver::cuda::Stream stream, Event event, unsigned) {
  if (event == nullptr) return Result::invalid_value;
  return put(stream, [] {});
}
Result is_capturing(driver::cuda::Stream handle, CaptureStatus* status) {
  const Lock lock(state().mutex);
  ++state().counts.capture_queries;
  const StreamHandle* const stream = resolve(handle);
  if (stream == nullptr) return Result::invalid_context;
  if (handle == nullptr && state().global_captures > 0) return Result::stream_capture_implicit;
  *status = stream->capture;
  return Result::success;
}
Result exchange_mode(CaptureMode* mode) {
  std::swap(thread_mode, *mode);
  return Result::success;
}
Result begin_capture(driver::cuda::Stream stream, CaptureMode mode) {
  const Lock lock(state().mutex);
  stream->capture = CaptureStatus::active;
  stream->mode = mode;
  stream->graph = new GraphHandle;
  if (mode == CaptureMode::global) ++state().global_captures;
  return Result::success;
}
Result end_capture(driver::cuda::Stream stream, Graph* graph) {
  const Lock lock(state().mutex);
  if (stream->mode == CaptureMode::global) --state().global_captures;
  const bool is_valid = stream->capture == CaptureStatus::active;
  stream->capture = CaptureStatus::none;
  *graph = std::exchange(stream->graph, nullptr);
  return is_valid ? Result::success : Result::stream_capture_invalidated;
}
Result instantiate(GraphExec* exec, Graph graph, unsigned long long) {
  *exec = new GraphExecHandle{graph->work};
  return Result::success;
}
Result launch_graph(GraphExec exec, driver::cuda::Stream) {
  for (const auto& work : exec->work) work();
  return Result::success;
}
Result destroy_exec(GraphExec exec) {
  delete exec;
  return Result::success;
}
Result destroy_graph(Graph graph) {
  delete graph;
  return Result::success;
}

Result create_event(Event* event, unsigned) {
  *event = new EventHandle;
  return Result::success;
}
Result destroy_event(Event event) {
  delete event;
  return Result::success;
}
Result record_event(Event event, driver::cuda::Stream stream) {
  event->is_recorded = true;
  return put(stream, [] {});
}
Result synchronize_event(Event) { return Result::success; }
Result elapsed(float* milliseconds, Event, Event) {
  *milliseconds = 1;
  return Result::success;
}

Result create_pool(MemoryPool* pool, const MemPoolProps*) {
  FAIL_WHERE_ASKED(cuMemPoolCreate);
  *pool = new MemoryPoolHandle;
  return Result::success;
}
Result trim_pool(MemoryPool, std::size_t) { return Result::success; }
std::uint64_t* pool_value(MemoryPool pool, MemPoolAttribute attribute) {
  switch (attribute) {
    case MemPoolAttribute::release_threshold:
      return &pool->release_threshold;
    case MemPoolAttribute::reserved_bytes:
      return &pool->reserved;
    case MemPoolAttribute::reserved_peak_bytes:
      return &pool->reserved_peak;
    case MemPoolAttribute::used_bytes:
      return &pool->used;
    case MemPoolAttribute::used_peak_bytes:
      return &pool->used_peak;
  }
  return nullptr;
}
Result set_pool(MemoryPool pool, MemPoolAttribute attribute, void* value) {
  std::memcpy(pool_value(pool, attribute), value, sizeof(std::uint64_t));
  return Result::success;
}
Result get_pool(MemoryPool pool, MemPoolAttribute attribute, void* value) {
  std::memcpy(value, pool_value(pool, attribute), sizeof(std::uint64_t));
  return Result::success;
}
Result allocate(DevicePointer* pointer, std::size_t bytes, MemoryPool pool,
                driver::cuda::Stream handle) {
  FAIL_WHERE_ASKED(cuMemAllocFromPoolAsync);
  const Lock lock(state().mutex);
  if (current() == nullptr) return Result::invalid_context;
  StreamHandle* const stream = resolve(handle);
  if (stream->capture != CaptureStatus::none) {
    stream->capture = CaptureStatus::invalidated;
    ++state().counts.calls_refused_in_capture;
    return Result::stream_capture_unsupported;
  }
  if (bytes > memory_bytes) return Result::out_of_memory;
  void* const memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xA5, bytes);  // callers must not rely on zeros
  *pointer = driver::device_pointer(memory);
  state().allocations[*pointer] = {pool, bytes};
  pool->used += bytes;
  pool->used_peak = std::max(pool->used_peak, pool->used);
  pool->reserved = std::max(pool->reserved, pool->used);
  pool->reserved_peak = std::max(pool->reserved_peak, pool->reserved);
  ++state().counts.allocations;
  return Result::success;
}
Result free_memory(DevicePointer pointer, driver::cuda::Stream) {
  const Lock lock(state().mutex);
  const auto found = state().allocations.find(pointer);
  if (found == state().allocations.end()) return Result::invalid_value;
  found->second.first->used -= found->second.second;
  std::free(reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer)));
  state().allocations.erase(found);
  return Result::success;
}

void* host(DevicePointer pointer) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer));
}
Result to_device(DevicePointer to, const void* from, std::size_t bytes,
                 driver::cuda::Stream stream) {
  return put(stream, [=] { std::memcpy(host(to), from, bytes); });
}
Result to_host(void* to, DevicePointer from, std::size_t bytes, driver::cuda::Stream stream) {
  return put(stream, [=] { std::memcpy(to, host(from), bytes); });
}
Result on_device(DevicePointer to, DevicePointer from, std::size_t bytes,
                 driver::cuda::Stream stream) {
  return put(stream, [=] { std::memcpy(host(to), host(from), bytes); });
}
Result to_peer(DevicePointer to, Context to_context, DevicePointer from, Context from_context,
               std::size_t bytes, driver::cuda::Stream stream) {
  if (to_context == from_context) return Result::invalid_value;
  return on_device(to, from, bytes, stream);
}
Result set_bytes(DevicePointer to, unsigned char value, std::size_t bytes,
                 driver::cuda::Stream stream) {
  ++state().counts.memsets;
  return put(stream, [=] { std::memset(host(to), value, bytes); });
}

// Handles live as long as the process. They are kept here so that leak checkers find them.
template <class Handle>
Handle* keep_handle(Handle handle) {
  static auto* const mutex = new std::mutex;
  static auto* const kept = new std::vector<std::unique_ptr<Handle>>;
  const std::scoped_lock lock(*mutex);
  return kept->emplace_back(std::make_unique<Handle>(std::move(handle))).get();
}

Result load_library(Library* library, const void*, int*, void**, unsigned, int*, void**, unsigned) {
  FAIL_WHERE_ASKED(cuLibraryLoadData);
  if (const Result refused = refuse_where_captured(); refused != Result::success) return refused;
  const Lock lock(state().mutex);
  ++state().counts.libraries_loaded;
  *library = keep_handle(LibraryHandle{});
  return Result::success;
}
Result unload_library(Library) {
  if (const Result refused = refuse_where_captured(); refused != Result::success) return refused;
  const Lock lock(state().mutex);
  ++state().counts.libraries_unloaded;
  return Result::success;
}
Result get_kernel(Kernel* kernel, Library, const char* name) {
  FAIL_WHERE_ASKED(cuLibraryGetKernel);
  *kernel = keep_handle(KernelHandle{.entry = name});
  return Result::success;
}
Result get_function(Function* function, Kernel kernel) {
  FAIL_WHERE_ASKED(cuKernelGetFunction);
  if (const Result refused = refuse_where_captured(); refused != Result::success) return refused;
  const Lock lock(state().mutex);
  if (current() == nullptr) return Result::invalid_context;
  ++state().counts.functions_prepared;
  *function = keep_handle(FunctionHandle{kernel->entry, current()->device});
  return Result::success;
}
Result kernel_attribute(int* value, FunctionAttribute, Kernel kernel, DeviceOrdinal) {
  *value = kernel->max_dynamic_shared_bytes;
  return Result::success;
}
Result set_kernel_attribute(FunctionAttribute attribute, int value, Kernel kernel, DeviceOrdinal) {
  if (attribute == FunctionAttribute::max_dynamic_shared_bytes)
    kernel->max_dynamic_shared_bytes = value;
  return Result::success;
}
Result launch_kernel(const LaunchConfig* config, Function function, void** parameters, void**) {
  FAIL_WHERE_ASKED(cuLaunchKernelEx);
  const Lock lock(state().mutex);
  if (current() == nullptr || current()->device != function->device) return Result::invalid_context;
  const StreamHandle* const stream = resolve(config->stream);
  if (stream->device != function->device) return Result::invalid_value;
  const auto found = state().kernels.find(function->entry);
  if (found == state().kernels.end()) return Result::not_found;
  // As in the real driver, the parameters are copied now, not when the work is executed.
  const auto* const bytes = static_cast<const unsigned char*>(parameters[0]);
  auto taken =
      std::make_shared<std::vector<unsigned char>>(bytes, bytes + found->second.parameter_bytes);
  ++state().counts.launches;
  FakeLaunch launch{.entry = function->entry,
                    .device = function->device,
                    .config = *config,
                    .parameters = nullptr};
  launch.config.attributes = nullptr;
  return put(config->stream, [run = found->second.run, launch, taken]() mutable {
    launch.parameters = taken->data();
    run(launch);
  });
}
Result encode_tiled(TensorMap* map, TensorMapDataType, std::uint32_t, void*, const std::uint64_t*,
                    const std::uint64_t*, const std::uint32_t*, const std::uint32_t*,
                    TensorMapInterleave, TensorMapSwizzle, TensorMapL2Promotion,
                    TensorMapOutOfBounds) {
  FAIL_WHERE_ASKED(cuTensorMapEncodeTiled);
  std::memset(map, 0, sizeof *map);
  return Result::success;
}

Result encode_im2col(TensorMap* map, TensorMapDataType, std::uint32_t, void*, const std::uint64_t*,
                     const std::uint64_t*, const int*, const int*, std::uint32_t, std::uint32_t,
                     const std::uint32_t*, TensorMapInterleave, TensorMapSwizzle,
                     TensorMapL2Promotion, TensorMapOutOfBounds) {
  FAIL_WHERE_ASKED(cuTensorMapEncodeIm2col);
  std::memset(map, 0, sizeof *map);
  return Result::success;
}

Result replace_address(TensorMap*, void*) {
  FAIL_WHERE_ASKED(cuTensorMapReplaceAddress);
  return Result::success;
}

driver::DriverApi fake_api() {
  return {.cuInit = init,
          .cuDriverGetVersion = driver_version,
          .cuGetErrorName = error_name,
          .cuGetErrorString = error_string,
          .cuDeviceGetCount = get_device_count,
          .cuDeviceGet = get_device,
          .cuDeviceGetName = device_name,
          .cuDeviceGetAttribute = device_attribute,
          .cuDeviceTotalMem = total_memory,
          .cuDevicePrimaryCtxRetain = retain,
          .cuCtxGetCurrent = get_current,
          .cuCtxSetCurrent = set_current,
          .cuCtxPushCurrent = push,
          .cuCtxPopCurrent = pop,
          .cuStreamCreate = create_stream,
          .cuStreamDestroy = destroy_stream,
          .cuStreamSynchronize = synchronize_stream,
          .cuStreamQuery = query_stream,
          .cuStreamWaitEvent = wait_event,
          .cuStreamIsCapturing = is_capturing,
          .cuThreadExchangeStreamCaptureMode = exchange_mode,
          .cuStreamBeginCapture = begin_capture,
          .cuStreamEndCapture = end_capture,
          .cuGraphInstantiateWithFlags = instantiate,
          .cuGraphLaunch = launch_graph,
          .cuGraphExecDestroy = destroy_exec,
          .cuGraphDestroy = destroy_graph,
          .cuEventCreate = create_event,
          .cuEventDestroy = destroy_event,
          .cuEventRecord = record_event,
          .cuEventSynchronize = synchronize_event,
          .cuEventElapsedTime = elapsed,
          .cuMemGetInfo = memory_info,
          .cuMemPoolCreate = create_pool,
          .cuMemPoolTrimTo = trim_pool,
          .cuMemPoolSetAttribute = set_pool,
          .cuMemPoolGetAttribute = get_pool,
          .cuMemAllocFromPoolAsync = allocate,
          .cuMemFreeAsync = free_memory,
          .cuMemcpyHtoDAsync = to_device,
          .cuMemcpyDtoHAsync = to_host,
          .cuMemcpyDtoDAsync = on_device,
          .cuMemcpyPeerAsync = to_peer,
          .cuMemsetD8Async = set_bytes,
          .cuLibraryLoadData = load_library,
          .cuLibraryUnload = unload_library,
          .cuLibraryGetKernel = get_kernel,
          .cuKernelGetFunction = get_function,
          .cuKernelGetAttribute = kernel_attribute,
          .cuKernelSetAttribute = set_kernel_attribute,
          .cuLaunchKernelEx = launch_kernel,
          .cuTensorMapEncodeTiled = encode_tiled,
          .cuTensorMapEncodeIm2col = encode_im2col,
          .cuTensorMapReplaceAddress = replace_address};
}

}  // namespace

const driver::Driver& install_fake_driver() {
  static const driver::Driver& installed = driver::register_driver(
      std::make_unique<driver::Driver>(DeviceType::emulated, fake_api(), "the fake driver"));
  return installed;
}

void define_fake_kernel(const std::string& entry, std::size_t parameter_bytes, FakeKernel kernel) {
  const Lock lock(state().mutex);
  state().kernels[entry] = {parameter_bytes, std::move(kernel)};
}

FakeCounts fake_counts() {
  const Lock lock(state().mutex);
  return state().counts;
}
void reset_fake_counts() {
  const Lock lock(state().mutex);
  state().counts = {};
}

void fail_next(const std::string& function, driver::cuda::Result result) {
  const Lock lock(state().mutex);
  state().failures[function] = result;
}

driver::cuda::Context fake_current_context() { return current(); }
void set_fake_current_context(driver::cuda::Context context) { set_current(context); }

}  // namespace gemmery::tests
