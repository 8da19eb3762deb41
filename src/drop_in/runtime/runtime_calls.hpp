// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA runtime API that our libcudart has, with the signatures of version 13;
// those that only version 12 has are in version_12.cpp. Functions that begin with two underscores
// are called by what nvcc writes; no manual describes them.
#pragma once

#include "drop_in/runtime/runtime_types.hpp"

// In version 12 these forms have names of their own.
#if GEMMERY_CUDART_VERSION < 13
#define cudaGetDeviceProperties cudaGetDeviceProperties_v2
#define cudaMemPrefetchAsync cudaMemPrefetchAsync_v2
#define cudaMemAdvise cudaMemAdvise_v2
#define cudaGraphGetEdges cudaGraphGetEdges_v2
#define cudaGraphNodeGetDependencies cudaGraphNodeGetDependencies_v2
#define cudaGraphNodeGetDependentNodes cudaGraphNodeGetDependentNodes_v2
#define cudaGraphAddDependencies cudaGraphAddDependencies_v2
#define cudaGraphRemoveDependencies cudaGraphRemoveDependencies_v2
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v3
#endif

// clang-format off
#define GEMMERY_RUNTIME_CALLS(X)                                                                   \
  /* errors and versions */                                                                        \
  X(cudaGetLastError, ())                                                                          \
  X(cudaPeekAtLastError, ())                                                                       \
  X(cudaDriverGetVersion, (int* version))                                                          \
  X(cudaRuntimeGetVersion, (int* version))                                                         \
  /* devices */                                                                                    \
  X(cudaGetDeviceCount, (int* count))                                                              \
  X(cudaGetDevice, (int* device))                                                                  \
  X(cudaSetDevice, (int device))                                                                   \
  X(cudaInitDevice, (int device, unsigned device_flags, unsigned flags))                           \
  X(cudaSetDeviceFlags, (unsigned flags))                                                          \
  X(cudaGetDeviceFlags, (unsigned* flags))                                                         \
  X(cudaSetValidDevices, (int* devices, int count))                                                \
  X(cudaChooseDevice, (int* device, const DeviceProperties* properties))                           \
  X(cudaGetDeviceProperties, (DeviceProperties* properties, int device))                           \
  X(cudaDeviceGetAttribute, (int* value, cuda::DeviceAttribute attribute, int device))             \
  X(cudaDeviceGetByPCIBusId, (int* device, const char* text))                                      \
  X(cudaDeviceGetPCIBusId, (char* text, int length, int device))                                   \
  X(cudaDeviceGetP2PAttribute, (int* value, int attribute, int device, int peer))                  \
  X(cudaDeviceCanAccessPeer, (int* can, int device, int peer))                                     \
  X(cudaDeviceEnablePeerAccess, (int peer, unsigned flags))                                        \
  X(cudaDeviceDisablePeerAccess, (int peer))                                                       \
  X(cudaDeviceReset, ())                                                                           \
  X(cudaDeviceSynchronize, ())                                                                     \
  X(cudaDeviceGetLimit, (std::size_t* value, int limit))                                           \
  X(cudaDeviceSetLimit, (int limit, std::size_t value))                                            \
  X(cudaDeviceGetCacheConfig, (int* config))                                                       \
  X(cudaDeviceSetCacheConfig, (int config))                                                        \
  X(cudaDeviceGetStreamPriorityRange, (int* least, int* greatest))                                 \
  X(cudaCtxResetPersistingL2Cache, ())                                                             \
  X(cudaGetDriverEntryPoint,                                                                       \
    (const char* name, void** function, unsigned long long flags, int* status))                    \
  X(cudaGetDriverEntryPointByVersion, (const char* name, void** function, unsigned version,        \
                                       unsigned long long flags, int* status))                     \
  X(cudaGetExportTable, (const void** table, const cuda::Uuid* id))                                \
  X(cudaProfilerStart, ())                                                                         \
  X(cudaProfilerStop, ())                                                                          \
  /* streams and events */                                                                         \
  X(cudaStreamCreate, (cuda::Stream* stream))                                                      \
  X(cudaStreamCreateWithFlags, (cuda::Stream* stream, unsigned flags))                             \
  X(cudaStreamCreateWithPriority, (cuda::Stream* stream, unsigned flags, int priority))            \
  X(cudaStreamDestroy, (cuda::Stream stream))                                                      \
  X(cudaStreamGetPriority, (cuda::Stream stream, int* priority))                                   \
  X(cudaStreamGetFlags, (cuda::Stream stream, unsigned* flags))                                    \
  X(cudaStreamGetId, (cuda::Stream stream, unsigned long long* id))                                \
  X(cudaStreamGetDevice, (cuda::Stream stream, int* device))                                       \
  X(cudaStreamCopyAttributes, (cuda::Stream to, cuda::Stream from))                                \
  X(cudaStreamSetAttribute, (cuda::Stream stream, int attribute, const void* value))               \
  X(cudaStreamWaitEvent, (cuda::Stream stream, cuda::Event event, unsigned flags))                 \
  X(cudaStreamAddCallback,                                                                         \
    (cuda::Stream stream, cuda::StreamCallback callback, void* data, unsigned flags))              \
  X(cudaStreamSynchronize, (cuda::Stream stream))                                                  \
  X(cudaStreamQuery, (cuda::Stream stream))                                                        \
  X(cudaStreamAttachMemAsync,                                                                      \
    (cuda::Stream stream, void* pointer, std::size_t bytes, unsigned flags))                       \
  X(cudaStreamBeginCapture, (cuda::Stream stream, cuda::CaptureMode mode))                         \
  X(cudaStreamEndCapture, (cuda::Stream stream, cuda::Graph* graph))                               \
  X(cudaStreamIsCapturing, (cuda::Stream stream, cuda::CaptureStatus* status))                     \
  X(cudaThreadExchangeStreamCaptureMode, (cuda::CaptureMode* mode))                                \
  X(cudaStreamGetCaptureInfo,                                                                      \
    (cuda::Stream stream, cuda::CaptureStatus* status, unsigned long long* id, cuda::Graph* graph, \
     const cuda::GraphNode** dependencies, const void** edges, std::size_t* count))                \
  X(cudaEventCreate, (cuda::Event* event))                                                         \
  X(cudaEventCreateWithFlags, (cuda::Event* event, unsigned flags))                                \
  X(cudaEventDestroy, (cuda::Event event))                                                         \
  X(cudaEventRecord, (cuda::Event event, cuda::Stream stream))                                     \
  X(cudaEventRecordWithFlags, (cuda::Event event, cuda::Stream stream, unsigned flags))            \
  X(cudaEventQuery, (cuda::Event event))                                                           \
  X(cudaEventSynchronize, (cuda::Event event))                                                     \
  X(cudaEventElapsedTime, (float* milliseconds, cuda::Event start, cuda::Event end))               \
  /* kernels */                                                                                    \
  X(cudaLaunchKernel, (const void* function, Extents grid, Extents block, void** parameters,       \
                       std::size_t shared_bytes, cuda::Stream stream))                             \
  X(cudaLaunchKernelExC,                                                                           \
    (const LaunchConfig* config, const void* function, void** parameters))                         \
  X(cudaLaunchCooperativeKernel, (const void* function, Extents grid, Extents block,               \
                                  void** parameters, std::size_t shared_bytes,                     \
                                  cuda::Stream stream))                                            \
  X(cudaLaunchHostFunc, (cuda::Stream stream, cuda::HostFunction function, void* data))            \
  X(cudaFuncSetCacheConfig, (const void* function, int config))                                    \
  X(cudaFuncGetAttributes, (FunctionAttributes* attributes, const void* function))                 \
  X(cudaFuncSetAttribute,                                                                          \
    (const void* function, cuda::FunctionAttribute attribute, int value))                          \
  X(cudaFuncGetName, (const char** name, const void* function))                                    \
  X(cudaFuncGetParamInfo,                                                                          \
    (const void* function, std::size_t index, std::size_t* offset, std::size_t* bytes))            \
  X(cudaGetFuncBySymbol, (cuda::Function* found, const void* function))                            \
  X(cudaGetKernel, (cuda::Kernel* kernel, const void* function))                                   \
  X(cudaKernelSetAttributeForDevice,                                                               \
    (cuda::Kernel kernel, cuda::FunctionAttribute attribute, int value, int device))               \
  X(cudaOccupancyMaxActiveBlocksPerMultiprocessor,                                                 \
    (int* blocks, const void* function, int block_size, std::size_t shared_bytes))                 \
  X(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,                                        \
    (int* blocks, const void* function, int block_size, std::size_t shared_bytes, unsigned flags)) \
  X(cudaOccupancyAvailableDynamicSMemPerBlock,                                                     \
    (std::size_t* bytes, const void* function, int blocks, int block_size))                        \
  X(cudaOccupancyMaxPotentialClusterSize,                                                          \
    (int* size, const void* function, const LaunchConfig* config))                                 \
  X(cudaOccupancyMaxActiveClusters,                                                                \
    (int* clusters, const void* function, const LaunchConfig* config))                             \
  /* libraries */                                                                                  \
  X(cudaLibraryLoadData,                                                                           \
    (cuda::Library* library, const void* code, int* options, void** values, unsigned count,        \
     int* library_options, void** library_values, unsigned library_count))                         \
  X(cudaLibraryLoadFromFile,                                                                       \
    (cuda::Library* library, const char* file, int* options, void** values, unsigned count,        \
     int* library_options, void** library_values, unsigned library_count))                         \
  X(cudaLibraryUnload, (cuda::Library library))                                                    \
  X(cudaLibraryGetKernel, (cuda::Kernel* kernel, cuda::Library library, const char* name))         \
  X(cudaLibraryGetGlobal,                                                                          \
    (void** pointer, std::size_t* bytes, cuda::Library library, const char* name))                 \
  X(cudaLibraryGetManaged,                                                                         \
    (void** pointer, std::size_t* bytes, cuda::Library library, const char* name))                 \
  X(cudaLibraryGetKernelCount, (unsigned* count, cuda::Library library))                           \
  X(cudaLibraryEnumerateKernels, (cuda::Kernel* kernels, unsigned count, cuda::Library library))   \
  /* memory */                                                                                     \
  X(cudaMalloc, (void** pointer, std::size_t bytes))                                               \
  X(cudaMallocManaged, (void** pointer, std::size_t bytes, unsigned flags))                        \
  X(cudaMallocHost, (void** pointer, std::size_t bytes))                                           \
  X(cudaMallocPitch,                                                                               \
    (void** pointer, std::size_t* pitch, std::size_t width, std::size_t height))                   \
  X(cudaMalloc3D, (PitchedPointer* pointer, Extent extent))                                        \
  X(cudaMallocAsync, (void** pointer, std::size_t bytes, cuda::Stream stream))                     \
  X(cudaMallocFromPoolAsync,                                                                       \
    (void** pointer, std::size_t bytes, cuda::MemoryPool pool, cuda::Stream stream))               \
  X(cudaFree, (void* pointer))                                                                     \
  X(cudaFreeAsync, (void* pointer, cuda::Stream stream))                                           \
  X(cudaFreeHost, (void* pointer))                                                                 \
  X(cudaHostAlloc, (void** pointer, std::size_t bytes, unsigned flags))                            \
  X(cudaHostRegister, (void* pointer, std::size_t bytes, unsigned flags))                          \
  X(cudaHostUnregister, (void* pointer))                                                           \
  X(cudaHostGetDevicePointer, (void** on_device, void* on_host, unsigned flags))                   \
  X(cudaHostGetFlags, (unsigned* flags, void* pointer))                                            \
  X(cudaMemGetInfo, (std::size_t* free_bytes, std::size_t* total_bytes))                           \
  X(cudaMemPrefetchAsync, (const void* pointer, std::size_t bytes, cuda::MemLocation location,     \
                           unsigned flags, cuda::Stream stream))                                   \
  X(cudaMemAdvise,                                                                                 \
    (const void* pointer, std::size_t bytes, int advice, cuda::MemLocation location))              \
  X(cudaPointerGetAttributes, (PointerAttributes* attributes, const void* pointer))                \
  X(cudaDeviceGetDefaultMemPool, (cuda::MemoryPool* pool, int device))                             \
  X(cudaDeviceGetMemPool, (cuda::MemoryPool* pool, int device))                                    \
  X(cudaDeviceSetMemPool, (int device, cuda::MemoryPool pool))                                     \
  X(cudaMemPoolCreate, (cuda::MemoryPool* pool, const cuda::MemPoolProps* properties))             \
  X(cudaMemPoolDestroy, (cuda::MemoryPool pool))                                                   \
  X(cudaMemPoolTrimTo, (cuda::MemoryPool pool, std::size_t keep_bytes))                            \
  X(cudaMemPoolSetAttribute,                                                                       \
    (cuda::MemoryPool pool, cuda::MemPoolAttribute attribute, void* value))                        \
  X(cudaMemPoolGetAttribute,                                                                       \
    (cuda::MemoryPool pool, cuda::MemPoolAttribute attribute, void* value))                        \
  X(cudaMemPoolSetAccess,                                                                          \
    (cuda::MemoryPool pool, const cuda::MemAccess* access, std::size_t count))                     \
  X(cudaMemPoolGetAccess, (int* flags, cuda::MemoryPool pool, cuda::MemLocation* location))        \
  /* copies and fills */                                                                           \
  X(cudaMemcpy, (void* to, const void* from, std::size_t bytes, CopyKind kind))                    \
  X(cudaMemcpyAsync, (void* to, const void* from, std::size_t bytes, CopyKind kind,                \
                      cuda::Stream stream))                                                        \
  X(cudaMemcpyPeer,                                                                                \
    (void* to, int to_device, const void* from, int from_device, std::size_t bytes))               \
  X(cudaMemcpyPeerAsync, (void* to, int to_device, const void* from, int from_device,              \
                          std::size_t bytes, cuda::Stream stream))                                 \
  X(cudaMemcpy2D, (void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,       \
                   std::size_t width, std::size_t height, CopyKind kind))                          \
  X(cudaMemcpy2DAsync, (void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,  \
                        std::size_t width, std::size_t height, CopyKind kind,                      \
                        cuda::Stream stream))                                                      \
  X(cudaMemcpy3D, (const CopyParameters* parameters))                                              \
  X(cudaMemcpy3DAsync, (const CopyParameters* parameters, cuda::Stream stream))                    \
  X(cudaMemcpy3DPeer, (const PeerCopyParameters* parameters))                                      \
  X(cudaMemcpy3DPeerAsync, (const PeerCopyParameters* parameters, cuda::Stream stream))            \
  X(cudaMemcpyToSymbol, (const void* symbol, const void* from, std::size_t bytes,                  \
                         std::size_t offset, CopyKind kind))                                       \
  X(cudaMemcpyToSymbolAsync, (const void* symbol, const void* from, std::size_t bytes,             \
                              std::size_t offset, CopyKind kind, cuda::Stream stream))             \
  X(cudaMemcpyFromSymbol, (void* to, const void* symbol, std::size_t bytes, std::size_t offset,    \
                           CopyKind kind))                                                         \
  X(cudaMemcpyFromSymbolAsync, (void* to, const void* symbol, std::size_t bytes,                   \
                                std::size_t offset, CopyKind kind, cuda::Stream stream))           \
  X(cudaGetSymbolAddress, (void** pointer, const void* symbol))                                    \
  X(cudaGetSymbolSize, (std::size_t* bytes, const void* symbol))                                   \
  X(cudaMemset, (void* to, int value, std::size_t bytes))                                          \
  X(cudaMemsetAsync, (void* to, int value, std::size_t bytes, cuda::Stream stream))                \
  X(cudaMemset2D,                                                                                  \
    (void* to, std::size_t pitch, int value, std::size_t width, std::size_t height))               \
  X(cudaMemset2DAsync, (void* to, std::size_t pitch, int value, std::size_t width,                 \
                        std::size_t height, cuda::Stream stream))                                  \
  X(cudaMemset3D, (PitchedPointer to, int value, Extent extent))                                   \
  X(cudaMemset3DAsync, (PitchedPointer to, int value, Extent extent, cuda::Stream stream))         \
  /* graphs */                                                                                     \
  X(cudaGraphCreate, (cuda::Graph* graph, unsigned flags))                                         \
  X(cudaGraphClone, (cuda::Graph* clone, cuda::Graph graph))                                       \
  X(cudaGraphDestroy, (cuda::Graph graph))                                                         \
  X(cudaGraphAddKernelNode, (cuda::GraphNode* node, cuda::Graph graph,                             \
                             const cuda::GraphNode* dependencies, std::size_t count,               \
                             const KernelParameters* parameters))                                  \
  X(cudaGraphKernelNodeGetParams, (cuda::GraphNode node, KernelParameters* parameters))            \
  X(cudaGraphKernelNodeSetParams, (cuda::GraphNode node, const KernelParameters* parameters))      \
  X(cudaGraphExecKernelNodeSetParams,                                                              \
    (cuda::GraphExec exec, cuda::GraphNode node, const KernelParameters* parameters))              \
  X(cudaGraphAddMemcpyNode, (cuda::GraphNode* node, cuda::Graph graph,                             \
                             const cuda::GraphNode* dependencies, std::size_t count,               \
                             const CopyParameters* parameters))                                    \
  X(cudaGraphAddMemcpyNode1D, (cuda::GraphNode* node, cuda::Graph graph,                           \
                               const cuda::GraphNode* dependencies, std::size_t count, void* to,   \
                               const void* from, std::size_t bytes, CopyKind kind))                \
  X(cudaGraphAddMemcpyNodeToSymbol,                                                                \
    (cuda::GraphNode* node, cuda::Graph graph, const cuda::GraphNode* dependencies,                \
     std::size_t count, const void* symbol, const void* from, std::size_t bytes,                   \
     std::size_t offset, CopyKind kind))                                                           \
  X(cudaGraphAddMemcpyNodeFromSymbol,                                                              \
    (cuda::GraphNode* node, cuda::Graph graph, const cuda::GraphNode* dependencies,                \
     std::size_t count, void* to, const void* symbol, std::size_t bytes, std::size_t offset,       \
     CopyKind kind))                                                                               \
  X(cudaGraphMemcpyNodeSetParams, (cuda::GraphNode node, const CopyParameters* parameters))        \
  X(cudaGraphMemcpyNodeSetParams1D, (cuda::GraphNode node, void* to, const void* from,             \
                                     std::size_t bytes, CopyKind kind))                            \
  X(cudaGraphExecMemcpyNodeSetParams,                                                              \
    (cuda::GraphExec exec, cuda::GraphNode node, const CopyParameters* parameters))                \
  X(cudaGraphExecMemcpyNodeSetParams1D, (cuda::GraphExec exec, cuda::GraphNode node, void* to,     \
                                         const void* from, std::size_t bytes, CopyKind kind))      \
  X(cudaGraphAddMemsetNode, (cuda::GraphNode* node, cuda::Graph graph,                             \
                             const cuda::GraphNode* dependencies, std::size_t count,               \
                             const cuda::Fill2D* parameters))                                      \
  X(cudaGraphMemsetNodeGetParams, (cuda::GraphNode node, cuda::Fill2D* parameters))                \
  X(cudaGraphMemsetNodeSetParams, (cuda::GraphNode node, const cuda::Fill2D* parameters))          \
  X(cudaGraphExecMemsetNodeSetParams,                                                              \
    (cuda::GraphExec exec, cuda::GraphNode node, const cuda::Fill2D* parameters))                  \
  X(cudaGraphAddHostNode, (cuda::GraphNode* node, cuda::Graph graph,                               \
                           const cuda::GraphNode* dependencies, std::size_t count,                 \
                           const cuda::HostNodeParams* parameters))                                \
  X(cudaGraphHostNodeGetParams, (cuda::GraphNode node, cuda::HostNodeParams* parameters))          \
  X(cudaGraphHostNodeSetParams, (cuda::GraphNode node, const cuda::HostNodeParams* parameters))    \
  X(cudaGraphExecHostNodeSetParams,                                                                \
    (cuda::GraphExec exec, cuda::GraphNode node, const cuda::HostNodeParams* parameters))          \
  X(cudaGraphAddChildGraphNode, (cuda::GraphNode* node, cuda::Graph graph,                         \
                                 const cuda::GraphNode* dependencies, std::size_t count,           \
                                 cuda::Graph child))                                               \
  X(cudaGraphChildGraphNodeGetGraph, (cuda::GraphNode node, cuda::Graph* graph))                   \
  X(cudaGraphExecChildGraphNodeSetParams,                                                          \
    (cuda::GraphExec exec, cuda::GraphNode node, cuda::Graph child))                               \
  X(cudaGraphAddEmptyNode, (cuda::GraphNode* node, cuda::Graph graph,                              \
                            const cuda::GraphNode* dependencies, std::size_t count))               \
  X(cudaGraphAddEventRecordNode, (cuda::GraphNode* node, cuda::Graph graph,                        \
                                  const cuda::GraphNode* dependencies, std::size_t count,          \
                                  cuda::Event event))                                              \
  X(cudaGraphAddEventWaitNode, (cuda::GraphNode* node, cuda::Graph graph,                          \
                                const cuda::GraphNode* dependencies, std::size_t count,            \
                                cuda::Event event))                                                \
  X(cudaGraphAddMemAllocNode, (cuda::GraphNode* node, cuda::Graph graph,                           \
                               const cuda::GraphNode* dependencies, std::size_t count,             \
                               cuda::AllocationNodeParams* parameters))                            \
  X(cudaGraphAddMemFreeNode, (cuda::GraphNode* node, cuda::Graph graph,                            \
                              const cuda::GraphNode* dependencies, std::size_t count,              \
                              void* pointer))                                                      \
  X(cudaDeviceGraphMemTrim, (int device))                                                          \
  X(cudaDeviceGetGraphMemAttribute, (int device, int attribute, void* value))                      \
  X(cudaDeviceSetGraphMemAttribute, (int device, int attribute, void* value))                      \
  X(cudaGraphNodeFindInClone, (cuda::GraphNode* node, cuda::GraphNode original, cuda::Graph clone))\
  X(cudaGraphNodeGetType, (cuda::GraphNode node, int* type))                                       \
  X(cudaGraphGetNodes, (cuda::Graph graph, cuda::GraphNode* nodes, std::size_t* count))            \
  X(cudaGraphGetRootNodes, (cuda::Graph graph, cuda::GraphNode* nodes, std::size_t* count))        \
  X(cudaGraphGetEdges, (cuda::Graph graph, cuda::GraphNode* from, cuda::GraphNode* to,             \
                        void* edges, std::size_t* count))                                          \
  X(cudaGraphNodeGetDependencies,                                                                  \
    (cuda::GraphNode node, cuda::GraphNode* nodes, void* edges, std::size_t* count))               \
  X(cudaGraphNodeGetDependentNodes,                                                                \
    (cuda::GraphNode node, cuda::GraphNode* nodes, void* edges, std::size_t* count))               \
  X(cudaGraphAddDependencies, (cuda::Graph graph, const cuda::GraphNode* from,                     \
                               const cuda::GraphNode* to, const void* edges, std::size_t count))   \
  X(cudaGraphRemoveDependencies, (cuda::Graph graph, const cuda::GraphNode* from,                  \
                                  const cuda::GraphNode* to, const void* edges,                    \
                                  std::size_t count))                                              \
  X(cudaGraphDestroyNode, (cuda::GraphNode node))                                                  \
  X(cudaGraphInstantiate, (cuda::GraphExec* exec, cuda::Graph graph, unsigned long long flags))    \
  X(cudaGraphInstantiateWithFlags,                                                                 \
    (cuda::GraphExec* exec, cuda::Graph graph, unsigned long long flags))                          \
  X(cudaGraphExecGetFlags, (cuda::GraphExec exec, unsigned long long* flags))                      \
  X(cudaGraphExecDestroy, (cuda::GraphExec exec))                                                  \
  X(cudaGraphExecUpdate, (cuda::GraphExec exec, cuda::Graph graph, void* info))                    \
  X(cudaGraphNodeSetEnabled, (cuda::GraphExec exec, cuda::GraphNode node, unsigned is_enabled))    \
  X(cudaGraphNodeGetEnabled, (cuda::GraphExec exec, cuda::GraphNode node, unsigned* is_enabled))   \
  X(cudaGraphUpload, (cuda::GraphExec exec, cuda::Stream stream))                                  \
  X(cudaGraphLaunch, (cuda::GraphExec exec, cuda::Stream stream))
// clang-format on

// A test includes the lists beside the toolkit's header, which declares the same names.
#ifndef GEMMERY_TYPES_ONLY
namespace gemmery::drop_in::runtime {

extern "C" {
#define GEMMERY_DECLARE(name, parameters) \
  __attribute__((visibility("default"))) Error name parameters;
GEMMERY_RUNTIME_CALLS(GEMMERY_DECLARE)
#undef GEMMERY_DECLARE

// What has another result.
__attribute__((visibility("default"))) const char* cudaGetErrorName(Error error);
__attribute__((visibility("default"))) const char* cudaGetErrorString(Error error);
__attribute__((visibility("default"))) ChannelFormat cudaCreateChannelDesc(int x, int y, int z,
                                                                           int w, int kind);
}

}  // namespace gemmery::drop_in::runtime

#endif  // GEMMERY_TYPES_ONLY
