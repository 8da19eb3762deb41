// SPDX-License-Identifier: Apache-2.0
// The types of the CUDA runtime API, written from its manual for versions 12 and 13. Where the two
// differ, GEMMERY_CUDART_VERSION says which one a library is. A test compares them with the
// toolkit's header where that is installed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drop_in/driver/driver_calls.hpp"

namespace gemmery::drop_in::runtime {

namespace cuda = driver::cuda;

// cudaError_t. Most codes have the numbers of the driver's.
enum class Error : int {
  success = 0,
  invalid_value = 1,
  memory_allocation = 2,
  invalid_configuration = 9,
  invalid_symbol = 13,
  invalid_copy_direction = 21,
  invalid_device_function = 98,
  no_device = 100,
  invalid_device = 101,
  invalid_kernel_image = 200,
  no_kernel_image_for_device = 209,
  invalid_resource_handle = 400,
  symbol_not_found = 500,
  not_ready = 600,
  launch_failure = 719,
  not_supported = 801,
  unknown = 999,
};

enum class CopyKind : int {
  host_to_host = 0,
  host_to_device = 1,
  device_to_host = 2,
  device_to_device = 3,
  automatic = 4
};

enum class PointerType : int { unregistered = 0, host = 1, device = 2, managed = 3 };

struct Extents {  // dim3
  unsigned x = 1, y = 1, z = 1;
};
struct Extent {
  std::size_t width = 0, height = 0, depth = 0;
};
struct Position {
  std::size_t x = 0, y = 0, z = 0;
};
struct PitchedPointer {
  void* pointer = nullptr;
  std::size_t pitch = 0, width = 0, height = 0;
};

struct CopyParameters {  // cudaMemcpy3DParms
  void* from_array = nullptr;
  Position from_position;
  PitchedPointer from;
  void* to_array = nullptr;
  Position to_position;
  PitchedPointer to;
  Extent extent;
  CopyKind kind = CopyKind::automatic;
};

struct PeerCopyParameters {  // cudaMemcpy3DPeerParms
  void* from_array = nullptr;
  Position from_position;
  PitchedPointer from;
  int from_device = 0;
  void* to_array = nullptr;
  Position to_position;
  PitchedPointer to;
  int to_device = 0;
  Extent extent;
};

struct KernelParameters {  // cudaKernelNodeParams
  void* function = nullptr;
  Extents grid, block;
  unsigned shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
};

struct LaunchConfig {  // cudaLaunchConfig_t
  Extents grid, block;
  std::size_t shared_bytes = 0;
  cuda::Stream stream = nullptr;
  cuda::LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

struct FunctionAttributes {  // cudaFuncAttributes
  std::size_t shared_bytes = 0, constant_bytes = 0, local_bytes = 0;
  int max_threads = 0;
  int registers = 0;
  int ptx_version = 0;
  int binary_version = 0;
  int cache_mode = 0;
  int max_dynamic_shared_bytes = 0;
  int carveout = 0;
  int cluster_must_be_set = 0;
  int cluster_width = 0, cluster_height = 0, cluster_depth = 0;
  int cluster_policy = 0;
  int allows_any_cluster = 0;
  int reserved[16] = {};
};

struct PointerAttributes {
  PointerType type = PointerType::unregistered;
  int device = 0;
  void* on_device = nullptr;
  void* on_host = nullptr;
#if GEMMERY_CUDART_VERSION >= 13
  long reserved[8] = {};
#endif
};

struct ChannelFormat {
  int x = 0, y = 0, z = 0, w = 0;
  int kind = 0;
};

// cudaDeviceProp, field by field in the manual's order and under its names.
struct DeviceProperties {
  char name[256];
  cuda::Uuid uuid;
  char luid[8];
  unsigned luidDeviceNodeMask;
  std::size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  std::size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
#if GEMMERY_CUDART_VERSION < 13
  int clockRate;
#endif
  std::size_t totalConstMem;
  int major, minor;
  std::size_t textureAlignment, texturePitchAlignment;
#if GEMMERY_CUDART_VERSION < 13
  int deviceOverlap;
#endif
  int multiProcessorCount;
#if GEMMERY_CUDART_VERSION < 13
  int kernelExecTimeoutEnabled;
#endif
  int integrated, canMapHostMemory;
#if GEMMERY_CUDART_VERSION < 13
  int computeMode;
#endif
  int maxTexture1D, maxTexture1DMipmap;
#if GEMMERY_CUDART_VERSION < 13
  int maxTexture1DLinear;
#endif
  int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2];
  int maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap, maxTexture1DLayered[2];
  int maxTexture2DLayered[3], maxTextureCubemapLayered[2], maxSurface1D, maxSurface2D[2];
  int maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3], maxSurfaceCubemap;
  int maxSurfaceCubemapLayered[2];
  std::size_t surfaceAlignment;
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
  int asyncEngineCount, unifiedAddressing;
#if GEMMERY_CUDART_VERSION < 13
  int memoryClockRate;
#endif
  int memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor;
  int streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
  std::size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
  int hostNativeAtomicSupported;
#if GEMMERY_CUDART_VERSION < 13
  int singleToDoublePrecisionPerfRatio;
#endif
  int pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported;
  int canUseHostPointerForRegisteredMem, cooperativeLaunch;
#if GEMMERY_CUDART_VERSION < 13
  int cooperativeMultiDeviceLaunch;
#endif
  std::size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
  int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
  std::size_t reservedSharedMemPerBlock;
  int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported;
  int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
  unsigned gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned memoryPoolSupportedHandleTypes;
  int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch;
  int unifiedFunctionPointers;
#if GEMMERY_CUDART_VERSION >= 13
  int deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
  unsigned gpuPciDeviceID, gpuPciSubsystemID;
  int hostNumaMultinodeIpcSupported;
  int reserved[56];
#else
  int reserved[63];
#endif
};

}  // namespace gemmery::drop_in::runtime
