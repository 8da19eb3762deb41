// SPDX-License-Identifier: Apache-2.0
// The part of the CUDA driver API (12.0 and later) that is used here, written from its manual, so
// that no toolkit header is needed. A test compares every size, offset and value with the toolkit's
// cuda.h where that is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gemmery::driver {

namespace cuda {

using DeviceOrdinal = int;                 // CUdevice
using DevicePointer = unsigned long long;  // CUdeviceptr
using Context = struct ContextHandle*;
using Stream = struct StreamHandle*;
using Event = struct EventHandle*;
using MemoryPool = struct MemoryPoolHandle*;
using Library = struct LibraryHandle*;
using Kernel = struct KernelHandle*;
using Function = struct FunctionHandle*;
using Graph = struct GraphHandle*;
using GraphExec = struct GraphExecHandle*;

enum class Result : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  deinitialized = 4,
  stub_library = 34,
  no_device = 100,
  invalid_device = 101,
  invalid_image = 200,
  invalid_context = 201,
  no_binary_for_gpu = 209,
  peer_access_unsupported = 217,
  invalid_ptx = 218,
  unsupported_ptx_version = 222,
  invalid_source = 300,
  file_not_found = 301,
  invalid_handle = 400,
  illegal_state = 401,
  not_found = 500,
  not_ready = 600,
  peer_access_already_enabled = 704,
  peer_access_not_enabled = 705,
  assert_failed = 710,
  host_memory_already_registered = 712,
  host_memory_not_registered = 713,
  launch_failed = 719,
  cooperative_launch_too_large = 720,
  not_supported = 801,
  system_driver_mismatch = 803,
  stream_capture_unsupported = 900,
  stream_capture_invalidated = 901,
  stream_capture_implicit = 906,
  stream_capture_wrong_thread = 908,
  graph_exec_update_failure = 910,
  invalid_cluster_size = 912,
  unknown = 999,
};

enum class DeviceAttribute : int {
  clock_rate_khz = 13,
  multiprocessor_count = 16,
  memory_clock_rate_khz = 36,
  memory_bus_width_bits = 37,
  l2_cache_bytes = 38,
  compute_capability_major = 75,
  compute_capability_minor = 76,
  max_shared_bytes_per_multiprocessor = 81,
  max_shared_bytes_per_block_optin = 97,
  memory_pools_supported = 115,
};

enum class FunctionAttribute : int {
  shared_bytes = 1,
  local_bytes = 3,
  registers = 4,
  max_dynamic_shared_bytes = 8,
  non_portable_cluster_size_allowed = 14,
};

enum class CaptureStatus : int { none = 0, active = 1, invalidated = 2 };
enum class CaptureMode : int { global = 0, thread_local_ = 1, relaxed = 2 };

enum StreamFlags : unsigned { stream_default = 0, stream_non_blocking = 1 };
enum EventFlags : unsigned { event_default = 0, event_disable_timing = 2 };

enum class MemPoolAttribute : int {
  release_threshold = 4,
  reserved_bytes = 5,
  reserved_peak_bytes = 6,
  used_bytes = 7,
  used_peak_bytes = 8,
};

struct MemLocation {
  int type = 1;  // device memory
  int id = 0;
};

struct MemPoolProps {
  int allocation_type = 1;  // pinned, the only type
  int handle_types = 0;     // not shared with other processes
  MemLocation location;
  void* win32_security_attributes = nullptr;
  std::size_t max_size = 0;  // 0: the system's limit
  unsigned short usage = 0;
  unsigned char reserved[54] = {};
};

enum class LaunchAttributeId : int {
  cooperative = 2,
  cluster_dimension = 4,
  programmatic_stream_serialization = 6
};

union LaunchAttributeValue {
  alignas(8) char pad[64];
  struct {
    unsigned x, y, z;
  } cluster_dimension;
  int cooperative;
  int programmatic_stream_serialization_allowed;
};

struct LaunchAttribute {
  LaunchAttributeId id;
  char pad[8 - sizeof(LaunchAttributeId)];
  LaunchAttributeValue value;
};

struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

struct alignas(128) TensorMap {
  std::uint64_t opaque[16];
};

enum class TensorMapDataType : int {
  uint8,
  uint16,
  uint32,
  int32,
  uint64,
  int64,
  float16,
  float32,
  float64,
  bfloat16,
  float32_flush,
  tfloat32,
  tfloat32_flush,
};
enum class TensorMapInterleave : int { none, bytes16, bytes32 };
enum class TensorMapSwizzle : int { none, bytes32, bytes64, bytes128 };
enum class TensorMapL2Promotion : int { none, bytes64, bytes128, bytes256 };
enum class TensorMapOutOfBounds : int { zero, nan_request_zero_fma };

// How cuGetProcAddress resolves a name: a null stream means the legacy default stream.
inline constexpr std::uint64_t proc_address_legacy_stream = 1;

// The version whose signatures are declared here; the oldest driver that is supported.
inline constexpr int api_version = 12000;

}  // namespace cuda

// Every function that is called: name in the manual, parameters. Each returns a Result.
#define GEMMERY_CUDA_FUNCTIONS(X)                                                                  \
  X(cuInit, (unsigned flags))                                                                      \
  X(cuDriverGetVersion, (int* version))                                                            \
  X(cuGetErrorName, (cuda::Result error, const char** text))                                       \
  X(cuGetErrorString, (cuda::Result error, const char** text))                                     \
  X(cuDeviceGetCount, (int* count))                                                                \
  X(cuDeviceGet, (cuda::DeviceOrdinal * device, int index))                                        \
  X(cuDeviceGetName, (char* name, int length, cuda::DeviceOrdinal device))                         \
  X(cuDeviceGetAttribute,                                                                          \
    (int* value, cuda::DeviceAttribute attribute, cuda::DeviceOrdinal device))                     \
  X(cuDeviceTotalMem, (std::size_t * bytes, cuda::DeviceOrdinal device))                           \
  X(cuDevicePrimaryCtxRetain, (cuda::Context * context, cuda::DeviceOrdinal device))               \
  X(cuCtxGetCurrent, (cuda::Context * context))                                                    \
  X(cuCtxSetCurrent, (cuda::Context context))                                                      \
  X(cuCtxPushCurrent, (cuda::Context context))                                                     \
  X(cuCtxPopCurrent, (cuda::Context * context))                                                    \
  X(cuStreamCreate, (cuda::Stream * stream, unsigned flags))                                       \
  X(cuStreamDestroy, (cuda::Stream stream))                                                        \
  X(cuStreamSynchronize, (cuda::Stream stream))                                                    \
  X(cuStreamQuery, (cuda::Stream stream))                                                          \
  X(cuStreamWaitEvent, (cuda::Stream stream, cuda::Event event, unsigned flags))                   \
  X(cuStreamIsCapturing, (cuda::Stream stream, cuda::CaptureStatus * status))                      \
  X(cuThreadExchangeStreamCaptureMode, (cuda::CaptureMode * mode))                                 \
  X(cuStreamBeginCapture, (cuda::Stream stream, cuda::CaptureMode mode))                           \
  X(cuStreamEndCapture, (cuda::Stream stream, cuda::Graph * graph))                                \
  X(cuGraphInstantiateWithFlags,                                                                   \
    (cuda::GraphExec * exec, cuda::Graph graph, unsigned long long flags))                         \
  X(cuGraphLaunch, (cuda::GraphExec exec, cuda::Stream stream))                                    \
  X(cuGraphExecDestroy, (cuda::GraphExec exec))                                                    \
  X(cuGraphDestroy, (cuda::Graph graph))                                                           \
  X(cuEventCreate, (cuda::Event * event, unsigned flags))                                          \
  X(cuEventDestroy, (cuda::Event event))                                                           \
  X(cuEventRecord, (cuda::Event event, cuda::Stream stream))                                       \
  X(cuEventSynchronize, (cuda::Event event))                                                       \
  X(cuEventElapsedTime, (float* milliseconds, cuda::Event start, cuda::Event end))                 \
  X(cuMemGetInfo, (std::size_t * free_bytes, std::size_t * total_bytes))                           \
  X(cuMemPoolCreate, (cuda::MemoryPool * pool, const cuda::MemPoolProps* properties))              \
  X(cuMemPoolTrimTo, (cuda::MemoryPool pool, std::size_t keep_bytes))                              \
  X(cuMemPoolSetAttribute, (cuda::MemoryPool pool, cuda::MemPoolAttribute attribute, void* value)) \
  X(cuMemPoolGetAttribute, (cuda::MemoryPool pool, cuda::MemPoolAttribute attribute, void* value)) \
  X(cuMemAllocFromPoolAsync, (cuda::DevicePointer * pointer, std::size_t bytes,                    \
                              cuda::MemoryPool pool, cuda::Stream stream))                         \
  X(cuMemFreeAsync, (cuda::DevicePointer pointer, cuda::Stream stream))                            \
  X(cuMemcpyHtoDAsync,                                                                             \
    (cuda::DevicePointer to, const void* from, std::size_t bytes, cuda::Stream stream))            \
  X(cuMemcpyDtoHAsync,                                                                             \
    (void* to, cuda::DevicePointer from, std::size_t bytes, cuda::Stream stream))                  \
  X(cuMemcpyDtoDAsync,                                                                             \
    (cuda::DevicePointer to, cuda::DevicePointer from, std::size_t bytes, cuda::Stream stream))    \
  X(cuMemcpyPeerAsync,                                                                             \
    (cuda::DevicePointer to, cuda::Context to_context, cuda::DevicePointer from,                   \
     cuda::Context from_context, std::size_t bytes, cuda::Stream stream))                          \
  X(cuMemsetD8Async,                                                                               \
    (cuda::DevicePointer to, unsigned char value, std::size_t bytes, cuda::Stream stream))         \
  X(cuLibraryLoadData, (cuda::Library * library, const void* code, int* jit_options,               \
                        void** jit_option_values, unsigned jit_option_count, int* library_options, \
                        void** library_option_values, unsigned library_option_count))              \
  X(cuLibraryUnload, (cuda::Library library))                                                      \
  X(cuLibraryGetKernel, (cuda::Kernel * kernel, cuda::Library library, const char* name))          \
  X(cuKernelGetFunction, (cuda::Function * function, cuda::Kernel kernel))                         \
  X(cuKernelGetAttribute, (int* value, cuda::FunctionAttribute attribute, cuda::Kernel kernel,     \
                           cuda::DeviceOrdinal device))                                            \
  X(cuKernelSetAttribute, (cuda::FunctionAttribute attribute, int value, cuda::Kernel kernel,      \
                           cuda::DeviceOrdinal device))                                            \
  X(cuLaunchKernelEx,                                                                              \
    (const cuda::LaunchConfig* config, cuda::Function function, void** parameters, void** extra))  \
  X(cuTensorMapEncodeTiled,                                                                        \
    (cuda::TensorMap * map, cuda::TensorMapDataType type, std::uint32_t rank, void* address,       \
     const std::uint64_t* extents, const std::uint64_t* byte_strides, const std::uint32_t* box,    \
     const std::uint32_t* element_strides, cuda::TensorMapInterleave interleave,                   \
     cuda::TensorMapSwizzle swizzle, cuda::TensorMapL2Promotion promotion,                         \
     cuda::TensorMapOutOfBounds out_of_bounds))                                                    \
  X(cuTensorMapEncodeIm2col,                                                                       \
    (cuda::TensorMap * map, cuda::TensorMapDataType type, std::uint32_t rank, void* address,       \
     const std::uint64_t* extents, const std::uint64_t* byte_strides, const int* lower_corner,     \
     const int* upper_corner, std::uint32_t channels_per_pixel, std::uint32_t pixels_per_column,   \
     const std::uint32_t* element_strides, cuda::TensorMapInterleave interleave,                   \
     cuda::TensorMapSwizzle swizzle, cuda::TensorMapL2Promotion promotion,                         \
     cuda::TensorMapOutOfBounds out_of_bounds))                                                    \
  X(cuTensorMapReplaceAddress, (cuda::TensorMap * map, void* address))

// The functions of one driver: NVIDIA's, or another implementation. Only this directory calls a
// driver in other ways.
struct DriverApi {
#define GEMMERY_DECLARE(name, parameters) cuda::Result(*name) parameters = nullptr;
  GEMMERY_CUDA_FUNCTIONS(GEMMERY_DECLARE)
#undef GEMMERY_DECLARE
};

}  // namespace gemmery::driver
