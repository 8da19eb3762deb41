// SPDX-License-Identifier: Apache-2.0
// The functions that our libcuda.so.1 has beside those of driver/cuda_api.hpp, written from the
// manual of the driver API, with the names that the library of the driver exports. A test compares
// them with cuda.h where that is installed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "driver/cuda_api.hpp"

namespace gemmery::driver::cuda {

using Module = Library;  // one object here
using GraphNode = struct GraphNodeHandle*;
using LinkState = struct LinkHandle*;
using MemoryHandle = unsigned long long;

enum class MemoryType : int { host = 1, device = 2, array = 3, unified = 4 };

struct Copy2D {
  std::size_t from_x_bytes = 0, from_y = 0;
  MemoryType from_type = MemoryType::unified;
  const void* from_host = nullptr;
  DevicePointer from_device = 0;
  void* from_array = nullptr;
  std::size_t from_pitch = 0;
  std::size_t to_x_bytes = 0, to_y = 0;
  MemoryType to_type = MemoryType::unified;
  void* to_host = nullptr;
  DevicePointer to_device = 0;
  void* to_array = nullptr;
  std::size_t to_pitch = 0;
  std::size_t width_bytes = 0, height = 0;
};

struct Copy3D {
  std::size_t from_x_bytes = 0, from_y = 0, from_z = 0, from_level = 0;
  MemoryType from_type = MemoryType::unified;
  const void* from_host = nullptr;
  DevicePointer from_device = 0;
  void* from_array = nullptr;
  void* from_reserved = nullptr;
  std::size_t from_pitch = 0, from_height = 0;
  std::size_t to_x_bytes = 0, to_y = 0, to_z = 0, to_level = 0;
  MemoryType to_type = MemoryType::unified;
  void* to_host = nullptr;
  DevicePointer to_device = 0;
  void* to_array = nullptr;
  void* to_reserved = nullptr;
  std::size_t to_pitch = 0, to_height = 0;
  std::size_t width_bytes = 0, height = 0, depth = 0;
};

struct Fill2D {
  DevicePointer to = 0;
  std::size_t pitch = 0;
  unsigned value = 0;
  unsigned element_bytes = 1;
  std::size_t width = 0, height = 1;  // elements, rows
};

struct KernelNodeParams {
  Function function = nullptr;
  unsigned grid_x = 1, grid_y = 1, grid_z = 1;
  unsigned block_x = 1, block_y = 1, block_z = 1;
  unsigned shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
  Kernel kernel = nullptr;
  Context context = nullptr;
};

using HostFunction = void (*)(void* data);
using StreamCallback = void (*)(Stream stream, Result result, void* data);

struct HostNodeParams {
  HostFunction function = nullptr;
  void* data = nullptr;
};

struct MemAccess {
  MemLocation location;
  int flags = 0;
};

struct MemPhysicalProps {
  int type = 1;  // pinned, the only type
  int handle_types = 0;
  MemLocation location;
  void* win32_metadata = nullptr;
  unsigned char flags[8] = {};
};

struct AllocationNodeParams {
  MemPoolProps pool;
  const MemAccess* access = nullptr;
  std::size_t access_count = 0;
  std::size_t bytes = 0;
  DevicePointer pointer = 0;
};

struct Uuid {
  char bytes[16];
};

inline constexpr int not_found_as_symbol = 1;  // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND

}  // namespace gemmery::driver::cuda

// clang-format off
#define GEMMERY_DROP_IN_DRIVER_CALLS(X)                                                            \
  /* the library itself */                                                                         \
  X(cuGetProcAddress, (const char* name, void** function, int version, std::uint64_t flags))       \
  X(cuGetProcAddress_v2,                                                                           \
    (const char* name, void** function, int version, std::uint64_t flags, int* status))            \
  X(cuGetExportTable, (const void** table, const cuda::Uuid* id))                                  \
  X(cuProfilerStart, ())                                                                           \
  X(cuProfilerStop, ())                                                                            \
  /* devices and contexts */                                                                       \
  X(cuDeviceGetUuid_v2, (cuda::Uuid* id, cuda::DeviceOrdinal device))                              \
  X(cuDeviceComputeCapability, (int* major, int* minor, cuda::DeviceOrdinal device))               \
  X(cuDeviceGetPCIBusId, (char* text, int length, cuda::DeviceOrdinal device))                     \
  X(cuDeviceGetByPCIBusId, (cuda::DeviceOrdinal* device, const char* text))                        \
  X(cuDeviceCanAccessPeer, (int* can, cuda::DeviceOrdinal device, cuda::DeviceOrdinal peer))       \
  X(cuDeviceGetP2PAttribute,                                                                       \
    (int* value, int attribute, cuda::DeviceOrdinal device, cuda::DeviceOrdinal peer))             \
  X(cuDevicePrimaryCtxRelease_v2, (cuda::DeviceOrdinal device))                                    \
  X(cuDevicePrimaryCtxReset_v2, (cuda::DeviceOrdinal device))                                      \
  X(cuDevicePrimaryCtxSetFlags_v2, (cuda::DeviceOrdinal device, unsigned flags))                   \
  X(cuDevicePrimaryCtxGetState, (cuda::DeviceOrdinal device, unsigned* flags, int* is_active))     \
  X(cuCtxCreate_v2, (cuda::Context* context, unsigned flags, cuda::DeviceOrdinal device))          \
  X(cuCtxCreate_v4,                                                                                \
    (cuda::Context* context, void* parameters, unsigned flags, cuda::DeviceOrdinal device))        \
  X(cuCtxDestroy_v2, (cuda::Context context))                                                      \
  X(cuCtxGetDevice, (cuda::DeviceOrdinal* device))                                                 \
  X(cuCtxGetFlags, (unsigned* flags))                                                              \
  X(cuCtxGetId, (cuda::Context context, unsigned long long* id))                                   \
  X(cuCtxGetApiVersion, (cuda::Context context, unsigned* version))                                \
  X(cuCtxSynchronize, ())                                                                          \
  X(cuCtxGetLimit, (std::size_t* value, int limit))                                                \
  X(cuCtxSetLimit, (int limit, std::size_t value))                                                 \
  X(cuCtxGetCacheConfig, (int* config))                                                            \
  X(cuCtxSetCacheConfig, (int config))                                                             \
  X(cuCtxResetPersistingL2Cache, ())                                                               \
  X(cuCtxGetStreamPriorityRange, (int* least, int* greatest))                                      \
  X(cuCtxEnablePeerAccess, (cuda::Context peer, unsigned flags))                                   \
  X(cuCtxDisablePeerAccess, (cuda::Context peer))                                                  \
  /* code */                                                                                       \
  X(cuModuleLoad, (cuda::Module* module, const char* file))                                        \
  X(cuModuleLoadData, (cuda::Module* module, const void* code))                                    \
  X(cuModuleLoadDataEx,                                                                            \
    (cuda::Module* module, const void* code, unsigned count, int* options, void** values))         \
  X(cuModuleLoadFatBinary, (cuda::Module* module, const void* code))                               \
  X(cuModuleUnload, (cuda::Module module))                                                         \
  X(cuModuleGetFunction, (cuda::Function* function, cuda::Module module, const char* name))        \
  X(cuModuleGetGlobal_v2, (cuda::DevicePointer* pointer, std::size_t* bytes, cuda::Module module,  \
                           const char* name))                                                      \
  X(cuModuleGetLoadingMode, (int* mode))                                                           \
  X(cuLinkCreate_v2,                                                                               \
    (unsigned count, int* options, void** values, cuda::LinkState* link))                          \
  X(cuLinkAddData_v2, (cuda::LinkState link, int type, void* data, std::size_t bytes,              \
                       const char* name, unsigned count, int* options, void** values))             \
  X(cuLinkAddFile_v2, (cuda::LinkState link, int type, const char* path, unsigned count,           \
                       int* options, void** values))                                               \
  X(cuLinkComplete, (cuda::LinkState link, void** image, std::size_t* bytes))                      \
  X(cuLinkDestroy, (cuda::LinkState link))                                                         \
  X(cuLibraryLoadFromFile,                                                                         \
    (cuda::Library* library, const char* file, int* options, void** values, unsigned count,        \
     int* library_options, void** library_values, unsigned library_count))                         \
  X(cuLibraryGetModule, (cuda::Module* module, cuda::Library library))                             \
  X(cuLibraryGetKernelCount, (unsigned* count, cuda::Library library))                             \
  X(cuLibraryEnumerateKernels, (cuda::Kernel* kernels, unsigned count, cuda::Library library))     \
  X(cuLibraryGetGlobal, (cuda::DevicePointer* pointer, std::size_t* bytes, cuda::Library library,  \
                         const char* name))                                                        \
  X(cuLibraryGetManaged, (cuda::DevicePointer* pointer, std::size_t* bytes,                        \
                          cuda::Library library, const char* name))                                \
  X(cuKernelGetName, (const char** name, cuda::Kernel kernel))                                     \
  X(cuKernelGetLibrary, (cuda::Library* library, cuda::Kernel kernel))                             \
  X(cuKernelGetParamInfo,                                                                          \
    (cuda::Kernel kernel, std::size_t index, std::size_t* offset, std::size_t* bytes))             \
  X(cuKernelSetCacheConfig, (cuda::Kernel kernel, int config, cuda::DeviceOrdinal device))         \
  X(cuFuncGetName, (const char** name, cuda::Function function))                                   \
  X(cuFuncGetModule, (cuda::Module* module, cuda::Function function))                              \
  X(cuFuncGetParamInfo,                                                                            \
    (cuda::Function function, std::size_t index, std::size_t* offset, std::size_t* bytes))         \
  X(cuFuncGetAttribute, (int* value, cuda::FunctionAttribute attribute, cuda::Function function))  \
  X(cuFuncSetAttribute, (cuda::Function function, cuda::FunctionAttribute attribute, int value))   \
  X(cuFuncSetCacheConfig, (cuda::Function function, int config))                                   \
  X(cuFuncIsLoaded, (int* state, cuda::Function function))                                         \
  X(cuFuncLoad, (cuda::Function function))                                                         \
  /* launches and occupancy */                                                                     \
  X(cuLaunchKernel, (cuda::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,   \
                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,  \
                     cuda::Stream stream, void** parameters, void** extra))                        \
  X(cuLaunchCooperativeKernel,                                                                     \
    (cuda::Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, cuda::Stream stream,               \
     void** parameters))                                                                           \
  X(cuLaunchHostFunc, (cuda::Stream stream, cuda::HostFunction function, void* data))              \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor,                                                   \
    (int* blocks, cuda::Function function, int block_size, std::size_t shared_bytes))              \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,                                          \
    (int* blocks, cuda::Function function, int block_size, std::size_t shared_bytes,               \
     unsigned flags))                                                                              \
  X(cuOccupancyMaxPotentialBlockSize,                                                              \
    (int* least_grid, int* block_size, cuda::Function function,                                    \
     std::size_t (*shared_bytes_of)(int), std::size_t shared_bytes, int limit))                    \
  X(cuOccupancyAvailableDynamicSMemPerBlock,                                                       \
    (std::size_t* bytes, cuda::Function function, int blocks, int block_size))                     \
  X(cuOccupancyMaxActiveClusters,                                                                  \
    (int* clusters, cuda::Function function, const cuda::LaunchConfig* config))                    \
  X(cuOccupancyMaxPotentialClusterSize,                                                            \
    (int* size, cuda::Function function, const cuda::LaunchConfig* config))                        \
  /* memory */                                                                                     \
  X(cuMemAlloc_v2, (cuda::DevicePointer* pointer, std::size_t bytes))                              \
  X(cuMemGetAllocationGranularity,                                                                 \
    (std::size_t * bytes, const cuda::MemPhysicalProps* properties, int option))                   \
  X(cuMemCreate, (cuda::MemoryHandle * handle, std::size_t bytes,                                  \
                  const cuda::MemPhysicalProps* properties, unsigned long long flags))             \
  X(cuMemRelease, (cuda::MemoryHandle handle))                                                     \
  X(cuMemAddressReserve, (cuda::DevicePointer * pointer, std::size_t bytes, std::size_t alignment, \
                          cuda::DevicePointer wished, unsigned long long flags))                   \
  X(cuMemAddressFree, (cuda::DevicePointer pointer, std::size_t bytes))                            \
  X(cuMemMap, (cuda::DevicePointer pointer, std::size_t bytes, std::size_t offset,                 \
               cuda::MemoryHandle handle, unsigned long long flags))                               \
  X(cuMemUnmap, (cuda::DevicePointer pointer, std::size_t bytes))                                  \
  X(cuMemSetAccess,                                                                                \
    (cuda::DevicePointer pointer, std::size_t bytes, const cuda::MemAccess* access,                \
     std::size_t count))                                                                           \
  X(cuMemAllocPitch_v2, (cuda::DevicePointer* pointer, std::size_t* pitch, std::size_t width_bytes,\
                         std::size_t height, unsigned element_bytes))                              \
  X(cuMemFree_v2, (cuda::DevicePointer pointer))                                                   \
  X(cuMemAllocHost_v2, (void** pointer, std::size_t bytes))                                        \
  X(cuMemHostAlloc, (void** pointer, std::size_t bytes, unsigned flags))                           \
  X(cuMemFreeHost, (void* pointer))                                                                \
  X(cuMemHostGetDevicePointer_v2, (cuda::DevicePointer* device, void* host, unsigned flags))       \
  X(cuMemHostGetFlags, (unsigned* flags, void* host))                                              \
  X(cuMemHostRegister_v2, (void* host, std::size_t bytes, unsigned flags))                         \
  X(cuMemHostUnregister, (void* host))                                                             \
  X(cuMemAllocManaged, (cuda::DevicePointer* pointer, std::size_t bytes, unsigned flags))          \
  X(cuMemPrefetchAsync, (cuda::DevicePointer pointer, std::size_t bytes,                           \
                         cuda::DeviceOrdinal device, cuda::Stream stream))                         \
  X(cuMemPrefetchAsync_v2, (cuda::DevicePointer pointer, std::size_t bytes,                        \
                            cuda::MemLocation location, unsigned flags, cuda::Stream stream))      \
  X(cuMemAdvise, (cuda::DevicePointer pointer, std::size_t bytes, int advice,                      \
                  cuda::DeviceOrdinal device))                                                     \
  X(cuMemAdvise_v2, (cuda::DevicePointer pointer, std::size_t bytes, int advice,                   \
                     cuda::MemLocation location))                                                  \
  X(cuMemGetAddressRange_v2,                                                                       \
    (cuda::DevicePointer* base, std::size_t* bytes, cuda::DevicePointer pointer))                  \
  X(cuPointerGetAttribute, (void* value, int attribute, cuda::DevicePointer pointer))              \
  X(cuPointerGetAttributes,                                                                        \
    (unsigned count, int* attributes, void** values, cuda::DevicePointer pointer))                 \
  X(cuPointerSetAttribute, (const void* value, int attribute, cuda::DevicePointer pointer))        \
  X(cuDeviceGetDefaultMemPool, (cuda::MemoryPool* pool, cuda::DeviceOrdinal device))               \
  X(cuDeviceGetMemPool, (cuda::MemoryPool* pool, cuda::DeviceOrdinal device))                      \
  X(cuDeviceSetMemPool, (cuda::DeviceOrdinal device, cuda::MemoryPool pool))                       \
  X(cuMemPoolDestroy, (cuda::MemoryPool pool))                                                     \
  X(cuMemPoolSetAccess, (cuda::MemoryPool pool, const cuda::MemAccess* access, std::size_t count)) \
  X(cuMemPoolGetAccess, (int* flags, cuda::MemoryPool pool, cuda::MemLocation* location))          \
  X(cuMemAllocAsync, (cuda::DevicePointer* pointer, std::size_t bytes, cuda::Stream stream))       \
  /* copies and fills */                                                                           \
  X(cuMemcpy, (cuda::DevicePointer to, cuda::DevicePointer from, std::size_t bytes))               \
  X(cuMemcpyAsync, (cuda::DevicePointer to, cuda::DevicePointer from, std::size_t bytes,           \
                    cuda::Stream stream))                                                          \
  X(cuMemcpyHtoD_v2, (cuda::DevicePointer to, const void* from, std::size_t bytes))                \
  X(cuMemcpyDtoH_v2, (void* to, cuda::DevicePointer from, std::size_t bytes))                      \
  X(cuMemcpyDtoD_v2, (cuda::DevicePointer to, cuda::DevicePointer from, std::size_t bytes))        \
  X(cuMemcpyHtoDAsync_v2,                                                                          \
    (cuda::DevicePointer to, const void* from, std::size_t bytes, cuda::Stream stream))            \
  X(cuMemcpyDtoHAsync_v2,                                                                          \
    (void* to, cuda::DevicePointer from, std::size_t bytes, cuda::Stream stream))                  \
  X(cuMemcpyDtoDAsync_v2, (cuda::DevicePointer to, cuda::DevicePointer from, std::size_t bytes,    \
                           cuda::Stream stream))                                                   \
  X(cuMemcpyPeer, (cuda::DevicePointer to, cuda::Context to_context, cuda::DevicePointer from,     \
                   cuda::Context from_context, std::size_t bytes))                                 \
  X(cuMemcpy2D_v2, (const cuda::Copy2D* copy))                                                     \
  X(cuMemcpy2DUnaligned_v2, (const cuda::Copy2D* copy))                                            \
  X(cuMemcpy2DAsync_v2, (const cuda::Copy2D* copy, cuda::Stream stream))                           \
  X(cuMemcpy3D_v2, (const cuda::Copy3D* copy))                                                     \
  X(cuMemcpy3DAsync_v2, (const cuda::Copy3D* copy, cuda::Stream stream))                           \
  X(cuMemsetD8_v2, (cuda::DevicePointer to, unsigned char value, std::size_t count))               \
  X(cuMemsetD16_v2, (cuda::DevicePointer to, unsigned short value, std::size_t count))             \
  X(cuMemsetD32_v2, (cuda::DevicePointer to, unsigned value, std::size_t count))                   \
  X(cuMemsetD16Async,                                                                              \
    (cuda::DevicePointer to, unsigned short value, std::size_t count, cuda::Stream stream))        \
  X(cuMemsetD32Async,                                                                              \
    (cuda::DevicePointer to, unsigned value, std::size_t count, cuda::Stream stream))              \
  X(cuMemsetD2D8_v2, (cuda::DevicePointer to, std::size_t pitch, unsigned char value,              \
                      std::size_t width, std::size_t height))                                      \
  X(cuMemsetD2D8Async, (cuda::DevicePointer to, std::size_t pitch, unsigned char value,            \
                        std::size_t width, std::size_t height, cuda::Stream stream))               \
  X(cuMemsetD2D32_v2, (cuda::DevicePointer to, std::size_t pitch, unsigned value,                  \
                       std::size_t width, std::size_t height))                                     \
  X(cuMemsetD2D32Async, (cuda::DevicePointer to, std::size_t pitch, unsigned value,                \
                         std::size_t width, std::size_t height, cuda::Stream stream))              \
  /* streams and events */                                                                         \
  X(cuStreamCreateWithPriority, (cuda::Stream* stream, unsigned flags, int priority))              \
  X(cuStreamGetPriority, (cuda::Stream stream, int* priority))                                     \
  X(cuStreamGetFlags, (cuda::Stream stream, unsigned* flags))                                      \
  X(cuStreamGetId, (cuda::Stream stream, unsigned long long* id))                                  \
  X(cuStreamGetCtx, (cuda::Stream stream, cuda::Context* context))                                 \
  X(cuStreamGetDevice, (cuda::Stream stream, cuda::DeviceOrdinal* device))                         \
  X(cuStreamAddCallback,                                                                           \
    (cuda::Stream stream, cuda::StreamCallback callback, void* data, unsigned flags))              \
  X(cuStreamAttachMemAsync,                                                                        \
    (cuda::Stream stream, cuda::DevicePointer pointer, std::size_t bytes, unsigned flags))         \
  X(cuStreamCopyAttributes, (cuda::Stream to, cuda::Stream from))                                  \
  X(cuStreamSetAttribute, (cuda::Stream stream, int attribute, const void* value))                 \
  X(cuStreamGetCaptureInfo_v2,                                                                     \
    (cuda::Stream stream, cuda::CaptureStatus* status, std::uint64_t* id, cuda::Graph* graph,      \
     const cuda::GraphNode** dependencies, std::size_t* count))                                    \
  X(cuStreamGetCaptureInfo_v3,                                                                     \
    (cuda::Stream stream, cuda::CaptureStatus* status, std::uint64_t* id, cuda::Graph* graph,      \
     const cuda::GraphNode** dependencies, const void** edges, std::size_t* count))                \
  X(cuEventQuery, (cuda::Event event))                                                             \
  X(cuEventRecordWithFlags, (cuda::Event event, cuda::Stream stream, unsigned flags))              \
  /* graphs */                                                                                     \
  X(cuGraphCreate, (cuda::Graph* graph, unsigned flags))                                           \
  X(cuGraphClone, (cuda::Graph* clone, cuda::Graph graph))                                         \
  X(cuGraphAddKernelNode_v2,                                                                       \
    (cuda::GraphNode* node, cuda::Graph graph, const cuda::GraphNode* dependencies,                \
     std::size_t count, const cuda::KernelNodeParams* parameters))                                 \
  X(cuGraphKernelNodeGetParams_v2, (cuda::GraphNode node, cuda::KernelNodeParams* parameters))     \
  X(cuGraphKernelNodeSetParams_v2,                                                                 \
    (cuda::GraphNode node, const cuda::KernelNodeParams* parameters))                              \
  X(cuGraphExecKernelNodeSetParams_v2,                                                             \
    (cuda::GraphExec exec, cuda::GraphNode node, const cuda::KernelNodeParams* parameters))        \
  X(cuGraphAddMemcpyNode, (cuda::GraphNode* node, cuda::Graph graph,                               \
                           const cuda::GraphNode* dependencies, std::size_t count,                 \
                           const cuda::Copy3D* copy, cuda::Context context))                       \
  X(cuGraphMemcpyNodeGetParams, (cuda::GraphNode node, cuda::Copy3D* copy))                        \
  X(cuGraphMemcpyNodeSetParams, (cuda::GraphNode node, const cuda::Copy3D* copy))                  \
  X(cuGraphExecMemcpyNodeSetParams, (cuda::GraphExec exec, cuda::GraphNode node,                   \
                                     const cuda::Copy3D* copy, cuda::Context context))             \
  X(cuGraphAddMemsetNode, (cuda::GraphNode* node, cuda::Graph graph,                               \
                           const cuda::GraphNode* dependencies, std::size_t count,                 \
                           const cuda::Fill2D* fill, cuda::Context context))                       \
  X(cuGraphMemsetNodeGetParams, (cuda::GraphNode node, cuda::Fill2D* fill))                        \
  X(cuGraphMemsetNodeSetParams, (cuda::GraphNode node, const cuda::Fill2D* fill))                  \
  X(cuGraphExecMemsetNodeSetParams, (cuda::GraphExec exec, cuda::GraphNode node,                   \
                                     const cuda::Fill2D* fill, cuda::Context context))             \
  X(cuGraphAddHostNode, (cuda::GraphNode* node, cuda::Graph graph,                                 \
                         const cuda::GraphNode* dependencies, std::size_t count,                   \
                         const cuda::HostNodeParams* parameters))                                  \
  X(cuGraphHostNodeGetParams, (cuda::GraphNode node, cuda::HostNodeParams* parameters))            \
  X(cuGraphHostNodeSetParams, (cuda::GraphNode node, const cuda::HostNodeParams* parameters))      \
  X(cuGraphExecHostNodeSetParams,                                                                  \
    (cuda::GraphExec exec, cuda::GraphNode node, const cuda::HostNodeParams* parameters))          \
  X(cuGraphAddChildGraphNode, (cuda::GraphNode* node, cuda::Graph graph,                           \
                               const cuda::GraphNode* dependencies, std::size_t count,             \
                               cuda::Graph child))                                                 \
  X(cuGraphChildGraphNodeGetGraph, (cuda::GraphNode node, cuda::Graph* graph))                     \
  X(cuGraphExecChildGraphNodeSetParams,                                                            \
    (cuda::GraphExec exec, cuda::GraphNode node, cuda::Graph child))                               \
  X(cuGraphAddEmptyNode, (cuda::GraphNode* node, cuda::Graph graph,                                \
                          const cuda::GraphNode* dependencies, std::size_t count))                 \
  X(cuGraphAddEventRecordNode, (cuda::GraphNode* node, cuda::Graph graph,                          \
                                const cuda::GraphNode* dependencies, std::size_t count,            \
                                cuda::Event event))                                                \
  X(cuGraphAddEventWaitNode, (cuda::GraphNode* node, cuda::Graph graph,                            \
                              const cuda::GraphNode* dependencies, std::size_t count,              \
                              cuda::Event event))                                                  \
  X(cuGraphAddMemAllocNode, (cuda::GraphNode* node, cuda::Graph graph,                             \
                             const cuda::GraphNode* dependencies, std::size_t count,               \
                             cuda::AllocationNodeParams* parameters))                              \
  X(cuGraphAddMemFreeNode, (cuda::GraphNode* node, cuda::Graph graph,                              \
                            const cuda::GraphNode* dependencies, std::size_t count,                \
                            cuda::DevicePointer pointer))                                          \
  X(cuGraphNodeFindInClone, (cuda::GraphNode* node, cuda::GraphNode original, cuda::Graph clone))  \
  X(cuGraphNodeGetType, (cuda::GraphNode node, int* type))                                         \
  X(cuGraphGetNodes, (cuda::Graph graph, cuda::GraphNode* nodes, std::size_t* count))              \
  X(cuGraphGetRootNodes, (cuda::Graph graph, cuda::GraphNode* nodes, std::size_t* count))          \
  X(cuGraphGetEdges, (cuda::Graph graph, cuda::GraphNode* from, cuda::GraphNode* to,               \
                      std::size_t* count))                                                         \
  X(cuGraphNodeGetDependencies,                                                                    \
    (cuda::GraphNode node, cuda::GraphNode* dependencies, std::size_t* count))                     \
  X(cuGraphNodeGetDependentNodes,                                                                  \
    (cuda::GraphNode node, cuda::GraphNode* dependents, std::size_t* count))                       \
  X(cuGraphAddDependencies, (cuda::Graph graph, const cuda::GraphNode* from,                       \
                             const cuda::GraphNode* to, std::size_t count))                        \
  X(cuGraphRemoveDependencies, (cuda::Graph graph, const cuda::GraphNode* from,                    \
                                const cuda::GraphNode* to, std::size_t count))                     \
  X(cuGraphDestroyNode, (cuda::GraphNode node))                                                    \
  X(cuGraphUpload, (cuda::GraphExec exec, cuda::Stream stream))                                    \
  X(cuGraphExecUpdate_v2, (cuda::GraphExec exec, cuda::Graph graph, void* info))                   \
  X(cuGraphExecGetFlags, (cuda::GraphExec exec, std::uint64_t* flags))                             \
  X(cuGraphNodeSetEnabled, (cuda::GraphExec exec, cuda::GraphNode node, unsigned is_enabled))      \
  X(cuGraphNodeGetEnabled, (cuda::GraphExec exec, cuda::GraphNode node, unsigned* is_enabled))     \
  X(cuDeviceGetGraphMemAttribute, (cuda::DeviceOrdinal device, int attribute, void* value))        \
  X(cuDeviceSetGraphMemAttribute, (cuda::DeviceOrdinal device, int attribute, void* value))        \
  X(cuDeviceGraphMemTrim, (cuda::DeviceOrdinal device))
// clang-format on

// A test includes the lists beside the toolkit's header, which declares the same names.
#ifndef GEMMERY_TYPES_ONLY
namespace gemmery::driver {

extern "C" {
#define GEMMERY_DECLARE(name, parameters) \
  __attribute__((visibility("default"))) cuda::Result name parameters;
GEMMERY_DROP_IN_DRIVER_CALLS(GEMMERY_DECLARE)
#undef GEMMERY_DECLARE
}

}  // namespace gemmery::driver

#endif  // GEMMERY_TYPES_ONLY
