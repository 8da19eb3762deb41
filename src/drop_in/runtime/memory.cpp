// SPDX-License-Identifier: Apache-2.0
// Memory of devices and pools, memory that is shared with the host, what is known of a pointer.
#include "drop_in/runtime/call.hpp"

namespace gemmery::drop_in::runtime {
namespace {

// Gives the address that a call of the driver finds; null if it finds none.
template <class Call>
Error give_pointer(void** pointer, Call&& driver_call) noexcept {
  return call([&] {
    cuda::DevicePointer address = 0;
    const cuda::Result result = driver_call(&address);
    if (result == cuda::Result::success) *pointer = host_pointer(address);
    return result;
  });
}

// CUpointer_attribute
constexpr int memory_type = 2, on_device = 3, on_host = 4, is_managed = 8, ordinal = 9;

PointerAttributes read_attributes(const void* pointer) {
  unsigned type = 0, managed = 0;
  cuda::DevicePointer device_address = 0;
  void* host_address = nullptr;
  int device = 0;
  int attributes[] = {memory_type, is_managed, on_device, on_host, ordinal};
  void* values[] = {&type, &managed, &device_address, &host_address, &device};
  driver::cuPointerGetAttributes(5, attributes, values, device_pointer(pointer));
  PointerAttributes found;
  found.type = managed != 0 ? PointerType::managed : static_cast<PointerType>(type);
  found.device = device;
  found.on_device = host_pointer(device_address);
  found.on_host = host_address;
  if (found.type == PointerType::unregistered) found.on_host = const_cast<void*>(pointer);
  return found;
}

}  // namespace

extern "C" {

// --- memory of the device -----------------------------------------------------------------------

Error cudaMalloc(void** pointer, std::size_t bytes) {
  if (bytes == 0) {  // unlike the driver's, which refuses
    *pointer = nullptr;
    return call([] { return cuda::Result::success; });
  }
  return give_pointer(
      pointer, [&](cuda::DevicePointer* address) { return driver::cuMemAlloc_v2(address, bytes); });
}

Error cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
  return give_pointer(pointer, [&](cuda::DevicePointer* address) {
    return driver::cuMemAllocPitch_v2(address, pitch, width, height, 4);
  });
}

Error cudaMalloc3D(PitchedPointer* pointer, Extent extent) {
  pointer->width = extent.width;
  pointer->height = extent.height;
  return cudaMallocPitch(&pointer->pointer, &pointer->pitch, extent.width,
                         extent.height * extent.depth);
}

Error cudaMallocAsync(void** pointer, std::size_t bytes, cuda::Stream stream) {
  return give_pointer(pointer, [&](cuda::DevicePointer* address) {
    return driver::cuMemAllocAsync(address, bytes, stream);
  });
}

Error cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, cuda::MemoryPool pool,
                              cuda::Stream stream) {
  return give_pointer(pointer, [&](cuda::DevicePointer* address) {
    return driver::cuMemAllocFromPoolAsync(address, bytes, pool, stream);
  });
}

Error cudaFree(void* pointer) {
  return call([&] { return driver::cuMemFree_v2(device_pointer(pointer)); });
}

Error cudaFreeAsync(void* pointer, cuda::Stream stream) {
  return call([&] { return driver::cuMemFreeAsync(device_pointer(pointer), stream); });
}

Error cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return call([&] { return driver::cuMemGetInfo_v2(free_bytes, total_bytes); });
}

// --- shared with the host -----------------------------------------------------------------------

Error cudaMallocManaged(void** pointer, std::size_t bytes, unsigned flags) {
  return give_pointer(pointer, [&](cuda::DevicePointer* address) {
    return driver::cuMemAllocManaged(address, bytes, flags);
  });
}

Error cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  return call([&] { return driver::cuMemHostAlloc(pointer, bytes, flags); });
}

Error cudaMallocHost(void** pointer, std::size_t bytes) { return cudaHostAlloc(pointer, bytes, 0); }

Error cudaFreeHost(void* pointer) {
  return call(
      [&] { return pointer == nullptr ? cuda::Result::success : driver::cuMemFreeHost(pointer); });
}

Error cudaHostRegister(void* pointer, std::size_t bytes, unsigned flags) {
  return call([&] { return driver::cuMemHostRegister_v2(pointer, bytes, flags); });
}

Error cudaHostUnregister(void* pointer) {
  return call([&] { return driver::cuMemHostUnregister(pointer); });
}

Error cudaHostGetDevicePointer(void** device_address, void* host_address, unsigned flags) {
  return give_pointer(device_address, [&](cuda::DevicePointer* address) {
    return driver::cuMemHostGetDevicePointer_v2(address, host_address, flags);
  });
}

Error cudaHostGetFlags(unsigned* flags, void* pointer) {
  return call([&] { return driver::cuMemHostGetFlags(flags, pointer); });
}

Error cudaMemPrefetchAsync(const void* pointer, std::size_t bytes, cuda::MemLocation location,
                           unsigned flags, cuda::Stream stream) {
  return call([&] {
    return driver::cuMemPrefetchAsync_v2(device_pointer(pointer), bytes, location, flags, stream);
  });
}

Error cudaMemAdvise(const void* pointer, std::size_t bytes, int advice,
                    cuda::MemLocation location) {
  return call(
      [&] { return driver::cuMemAdvise_v2(device_pointer(pointer), bytes, advice, location); });
}

Error cudaPointerGetAttributes(PointerAttributes* attributes, const void* pointer) {
  return call([&] {
    *attributes = read_attributes(pointer);
    return cuda::Result::success;
  });
}

// --- pools --------------------------------------------------------------------------------------

Error cudaDeviceGetDefaultMemPool(cuda::MemoryPool* pool, int device) {
  return call([&] { return driver::cuDeviceGetDefaultMemPool(pool, device); });
}

Error cudaDeviceGetMemPool(cuda::MemoryPool* pool, int device) {
  return call([&] { return driver::cuDeviceGetMemPool(pool, device); });
}

Error cudaDeviceSetMemPool(int device, cuda::MemoryPool pool) {
  return call([&] { return driver::cuDeviceSetMemPool(device, pool); });
}

Error cudaMemPoolCreate(cuda::MemoryPool* pool, const cuda::MemPoolProps* properties) {
  return call([&] { return driver::cuMemPoolCreate(pool, properties); });
}

Error cudaMemPoolDestroy(cuda::MemoryPool pool) {
  return call([&] { return driver::cuMemPoolDestroy(pool); });
}

Error cudaMemPoolTrimTo(cuda::MemoryPool pool, std::size_t keep_bytes) {
  return call([&] { return driver::cuMemPoolTrimTo(pool, keep_bytes); });
}

Error cudaMemPoolSetAttribute(cuda::MemoryPool pool, cuda::MemPoolAttribute attribute,
                              void* value) {
  return call([&] { return driver::cuMemPoolSetAttribute(pool, attribute, value); });
}

Error cudaMemPoolGetAttribute(cuda::MemoryPool pool, cuda::MemPoolAttribute attribute,
                              void* value) {
  return call([&] { return driver::cuMemPoolGetAttribute(pool, attribute, value); });
}

Error cudaMemPoolSetAccess(cuda::MemoryPool pool, const cuda::MemAccess* access,
                           std::size_t count) {
  return call([&] { return driver::cuMemPoolSetAccess(pool, access, count); });
}

Error cudaMemPoolGetAccess(int* flags, cuda::MemoryPool pool, cuda::MemLocation* location) {
  return call([&] { return driver::cuMemPoolGetAccess(flags, pool, location); });
}

}  // extern "C"
}  // namespace gemmery::drop_in::runtime
