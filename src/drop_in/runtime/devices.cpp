// SPDX-License-Identifier: Apache-2.0
// Devices, their properties, the thread's current one.
#include <algorithm>
#include <cstring>

#include "drop_in/runtime/call.hpp"

namespace gemmery::drop_in::runtime {
namespace {

constexpr int runtime_version = GEMMERY_CUDART_VERSION * 1000;

thread_local int thread_device = 0;

// Makes the primary context of a device current.
cuda::Result make_current(int device) noexcept {
  static const cuda::Result initialised = driver::cuInit(0);
  if (initialised != cuda::Result::success) return initialised;
  cuda::Context context = nullptr;
  const cuda::Result retained = driver::cuDevicePrimaryCtxRetain(&context, device);
  return retained != cuda::Result::success ? retained : driver::cuCtxSetCurrent(context);
}

// Runs a call with the primary context of a device, and returns to the current one.
template <class Call>
Error call_on(int device, Call&& driver_call) noexcept {
  return call([&] {
    cuda::Context context = nullptr;
    const cuda::Result retained = driver::cuDevicePrimaryCtxRetain(&context, device);
    return retained != cuda::Result::success ? retained : driver_call(context);
  });
}

int attribute(int device, int number) noexcept {
  int value = 0;
  driver::cuDeviceGetAttribute(&value, static_cast<cuda::DeviceAttribute>(number), device);
  return value;
}

void fill_limits(DeviceProperties& properties, int device) {
  const auto value = [device](int number) { return attribute(device, number); };
  const auto bytes = [device](int number) {
    return static_cast<std::size_t>(attribute(device, number));
  };
  properties.sharedMemPerBlock = bytes(8);
  properties.regsPerBlock = value(12);
  properties.warpSize = value(10);
  properties.memPitch = bytes(11);
  properties.maxThreadsPerBlock = value(1);
  for (int axis = 0; axis < 3; ++axis) {
    properties.maxThreadsDim[axis] = value(2 + axis);
    properties.maxGridSize[axis] = value(5 + axis);
  }
  properties.totalConstMem = bytes(9);
  properties.maxThreadsPerMultiProcessor = value(39);
  properties.sharedMemPerMultiprocessor = bytes(81);
  properties.regsPerMultiprocessor = value(82);
  properties.sharedMemPerBlockOptin = bytes(97);
  properties.maxBlocksPerMultiProcessor = value(106);
  properties.reservedSharedMemPerBlock = bytes(111);
  properties.textureAlignment = bytes(14);
  properties.texturePitchAlignment = bytes(51);
}

void fill_abilities(DeviceProperties& properties, int device) {
  const auto value = [device](int number) { return attribute(device, number); };
  properties.canMapHostMemory = value(19);
  properties.concurrentKernels = value(31);
  properties.pciBusID = value(33);
  properties.asyncEngineCount = value(40);
  properties.unifiedAddressing = value(41);
  properties.streamPrioritiesSupported = value(78);
  properties.globalL1CacheSupported = value(79);
  properties.localL1CacheSupported = value(80);
  properties.managedMemory = value(83);
  properties.concurrentManagedAccess = value(89);
  properties.computePreemptionSupported = value(90);
  properties.cooperativeLaunch = value(95);
  properties.hostRegisterSupported = value(99);
  properties.memoryPoolsSupported = value(115);
  properties.clusterLaunch = value(120);
}

void fill_chip(DeviceProperties& properties, int device) {
  const auto value = [device](int number) { return attribute(device, number); };
  driver::cuDeviceGetName(properties.name, sizeof properties.name, device);
  driver::cuDeviceGetUuid_v2(&properties.uuid, device);
  driver::cuDeviceTotalMem_v2(&properties.totalGlobalMem, device);
  properties.major = value(75);
  properties.minor = value(76);
  properties.multiProcessorCount = value(16);
  properties.memoryBusWidth = value(37);
  properties.l2CacheSize = value(38);
  properties.persistingL2CacheMaxSize = value(108);
  properties.accessPolicyMaxWindowSize = value(109);
#if GEMMERY_CUDART_VERSION < 13
  properties.clockRate = value(13);
  properties.memoryClockRate = value(36);
  properties.deviceOverlap = 1;
  properties.singleToDoublePrecisionPerfRatio = value(87);
#endif
}

}  // namespace

cuda::Result enter() noexcept {
  cuda::Context context = nullptr;
  driver::cuCtxGetCurrent(&context);
  return context != nullptr ? cuda::Result::success : make_current(thread_device);
}

extern "C" {

// --- versions -----------------------------------------------------------------------------------

Error cudaDriverGetVersion(int* version) {
  *version = runtime_version;  // the emulator serves every runtime
  return Error::success;
}

Error cudaRuntimeGetVersion(int* version) {
  *version = runtime_version;
  return Error::success;
}

// --- choice of a device -------------------------------------------------------------------------

Error cudaGetDeviceCount(int* count) {
  return call([&] { return driver::cuDeviceGetCount(count); });
}

Error cudaGetDevice(int* device) {
  return call([&] { return driver::cuCtxGetDevice(device); });
}

Error cudaSetDevice(int device) {
  const cuda::Result result = make_current(device);
  if (result == cuda::Result::success) thread_device = device;
  return note(result);
}

Error cudaInitDevice(int device, unsigned, unsigned) {
  return call_on(device, [](cuda::Context) { return cuda::Result::success; });
}

Error cudaSetDeviceFlags(unsigned flags) {
  return call([&] { return driver::cuDevicePrimaryCtxSetFlags_v2(thread_device, flags); });
}

Error cudaGetDeviceFlags(unsigned* flags) {
  return call([&] { return driver::cuCtxGetFlags(flags); });
}

Error cudaSetValidDevices(int*, int) { return Error::success; }

Error cudaChooseDevice(int* device, const DeviceProperties*) {
  *device = 0;
  return Error::success;
}

// --- facts --------------------------------------------------------------------------------------

Error cudaGetDeviceProperties(DeviceProperties* properties, int device) {
  return call_on(device, [&](cuda::Context) {
    std::memset(properties, 0, sizeof *properties);
    fill_chip(*properties, device);
    fill_limits(*properties, device);
    fill_abilities(*properties, device);
    return cuda::Result::success;
  });
}

Error cudaDeviceGetAttribute(int* value, cuda::DeviceAttribute which, int device) {
  return call([&] { return driver::cuDeviceGetAttribute(value, which, device); });
}

Error cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return call([&] { return driver::cuDeviceGetByPCIBusId(device, text); });
}

Error cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return call([&] { return driver::cuDeviceGetPCIBusId(text, length, device); });
}

Error cudaDeviceGetP2PAttribute(int* value, int which, int device, int peer) {
  return call([&] { return driver::cuDeviceGetP2PAttribute(value, which, device, peer); });
}

// --- peers --------------------------------------------------------------------------------------

Error cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call([&] { return driver::cuDeviceCanAccessPeer(can, device, peer); });
}

Error cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return call_on(
      peer, [&](cuda::Context context) { return driver::cuCtxEnablePeerAccess(context, flags); });
}

Error cudaDeviceDisablePeerAccess(int peer) {
  return call_on(peer,
                 [&](cuda::Context context) { return driver::cuCtxDisablePeerAccess(context); });
}

// --- the current device -------------------------------------------------------------------------

Error cudaDeviceReset() {
  return call([&] { return driver::cuDevicePrimaryCtxReset_v2(thread_device); });
}

Error cudaDeviceSynchronize() { return call(driver::cuCtxSynchronize); }

Error cudaDeviceGetLimit(std::size_t* value, int limit) {
  return call([&] { return driver::cuCtxGetLimit(value, limit); });
}

Error cudaDeviceSetLimit(int limit, std::size_t value) {
  return call([&] { return driver::cuCtxSetLimit(limit, value); });
}

Error cudaDeviceGetCacheConfig(int* config) {
  return call([&] { return driver::cuCtxGetCacheConfig(config); });
}

Error cudaDeviceSetCacheConfig(int config) {
  return call([&] { return driver::cuCtxSetCacheConfig(config); });
}

Error cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call([&] { return driver::cuCtxGetStreamPriorityRange(least, greatest); });
}

Error cudaCtxResetPersistingL2Cache() { return Error::success; }

// --- the driver ---------------------------------------------------------------------------------

Error cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                       unsigned long long flags, int* status) {
  int found = 0;
  const Error error = call([&] {
    return driver::cuGetProcAddress_v2(name, function, static_cast<int>(version), flags, &found);
  });
  if (status != nullptr) *status = found;
  return error == Error::success && found != 0 && status == nullptr ? note(Error::symbol_not_found)
                                                                    : error;
}

Error cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                              int* status) {
  return cudaGetDriverEntryPointByVersion(name, function, runtime_version, flags, status);
}

Error cudaGetExportTable(const void** table, const cuda::Uuid* id) {
  return call([&] { return driver::cuGetExportTable(table, id); });
}

Error cudaProfilerStart() { return Error::success; }
Error cudaProfilerStop() { return Error::success; }

ChannelFormat cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
  return {x, y, z, w, kind};
}

}  // extern "C"
}  // namespace gemmery::drop_in::runtime
