// SPDX-License-Identifier: Apache-2.0
// The functions that the library exports and the emulator has: as they are, or replaced.
#pragma once

#include "drop_in/driver/driver_calls.hpp"

// clang-format off
// name exported, function of the emulator
#define GEMMERY_EXPORTS(X)                                         \
  X(cuInit, cuInit)                                                \
  X(cuGetErrorName, cuGetErrorName)                                \
  X(cuGetErrorString, cuGetErrorString)                            \
  X(cuDeviceGetCount, cuDeviceGetCount)                            \
  X(cuDeviceGet, cuDeviceGet)                                      \
  X(cuDeviceGetName, cuDeviceGetName)                              \
  X(cuDeviceTotalMem_v2, cuDeviceTotalMem)                         \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)            \
  X(cuCtxGetCurrent, cuCtxGetCurrent)                              \
  X(cuCtxSetCurrent, cuCtxSetCurrent)                              \
  X(cuCtxPushCurrent_v2, cuCtxPushCurrent)                         \
  X(cuCtxPopCurrent_v2, cuCtxPopCurrent)                           \
  X(cuStreamCreate, cuStreamCreate)                                \
  X(cuStreamDestroy_v2, cuStreamDestroy)                           \
  X(cuStreamWaitEvent, cuStreamWaitEvent)                          \
  X(cuStreamIsCapturing, cuStreamIsCapturing)                      \
  X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode) \
  X(cuStreamBeginCapture_v2, cuStreamBeginCapture)                 \
  X(cuStreamEndCapture, cuStreamEndCapture)                        \
  X(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags)      \
  X(cuGraphExecDestroy, cuGraphExecDestroy)                        \
  X(cuGraphDestroy, cuGraphDestroy)                                \
  X(cuEventCreate, cuEventCreate)                                  \
  X(cuEventDestroy_v2, cuEventDestroy)                             \
  X(cuEventRecord, cuEventRecord)                                  \
  X(cuEventElapsedTime, cuEventElapsedTime)                        \
  X(cuEventElapsedTime_v2, cuEventElapsedTime)                     \
  X(cuMemGetInfo_v2, cuMemGetInfo)                                 \
  X(cuMemPoolCreate, cuMemPoolCreate)                              \
  X(cuMemPoolTrimTo, cuMemPoolTrimTo)                              \
  X(cuMemPoolSetAttribute, cuMemPoolSetAttribute)                  \
  X(cuMemPoolGetAttribute, cuMemPoolGetAttribute)                  \
  X(cuLibraryUnload, cuLibraryUnload)                              \
  X(cuLibraryGetKernel, cuLibraryGetKernel)                        \
  X(cuKernelGetFunction, cuKernelGetFunction)                      \
  X(cuTensorMapEncodeTiled, cuTensorMapEncodeTiled)                \
  X(cuTensorMapEncodeIm2col, cuTensorMapEncodeIm2col)              \
  X(cuTensorMapReplaceAddress, cuTensorMapReplaceAddress)


// Replaced by functions that take more than the emulator's: other memories, kernels' handles, fat
// binaries, attributes.
#define GEMMERY_OVERRIDES(X)   \
  X(cuDriverGetVersion, )      \
  X(cuDeviceGetAttribute, )    \
  X(cuStreamSynchronize, )     \
  X(cuStreamQuery, )           \
  X(cuEventSynchronize, )      \
  X(cuGraphLaunch, )           \
  X(cuMemAllocFromPoolAsync, ) \
  X(cuMemFreeAsync, )          \
  X(cuMemcpyPeerAsync, )       \
  X(cuMemsetD8Async, )         \
  X(cuLibraryLoadData, )       \
  X(cuKernelGetAttribute, )    \
  X(cuKernelSetAttribute, )    \
  X(cuLaunchKernelEx, )
// clang-format on

namespace gemmery::driver {

// The types of the functions of driver/cuda_api.hpp, by name.
struct DriverCallTypes {
#define GEMMERY_TYPE(name, parameters) typedef cuda::Result name parameters;
  GEMMERY_CUDA_FUNCTIONS(GEMMERY_TYPE)
#undef GEMMERY_TYPE
};

extern "C" {
#define GEMMERY_DECLARE(exported, function) \
  __attribute__((visibility("default"))) DriverCallTypes::function exported;
GEMMERY_EXPORTS(GEMMERY_DECLARE)
#undef GEMMERY_DECLARE
// For our libcudart: refuses a function by its name.
__attribute__((visibility("default"))) cuda::Result gemmery_refuse_call(const char* function);

#define GEMMERY_DECLARE(function, unused) \
  __attribute__((visibility("default"))) DriverCallTypes::function function;
GEMMERY_OVERRIDES(GEMMERY_DECLARE)
#undef GEMMERY_DECLARE
}

}  // namespace gemmery::driver
