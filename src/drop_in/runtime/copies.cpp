// SPDX-License-Identifier: Apache-2.0
// Copies, fills and symbols. What a pointer points to decides, not the direction that is given.
#include "drop_in/runtime/copies.hpp"

#include "drop_in/runtime/registry.hpp"

namespace gemmery::drop_in::runtime {
namespace {

cuda::MemoryType type_of(const void* array) noexcept {
  return array == nullptr ? cuda::MemoryType::unified : cuda::MemoryType::array;
}

// Runs a call with the address of a part of a symbol.
template <class Call>
Error call_with_symbol(const void* symbol, std::size_t bytes, std::size_t offset, CopyKind kind,
                       Call&& driver_call) noexcept {
  return call([&] {
    cuda::DevicePointer address = 0;
    std::size_t size = 0;
    cuda::Result result = check(kind);
    if (result == cuda::Result::success) result = find_symbol(symbol, address, size);
    if (result != cuda::Result::success) return result;
    if (offset > size || bytes > size - offset) return cuda::Result::invalid_value;
    return driver_call(address + offset);
  });
}

cuda::Copy2D rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                  std::size_t width, std::size_t height) noexcept {
  return {.from_device = device_pointer(from),
          .from_pitch = from_pitch,
          .to_device = device_pointer(to),
          .to_pitch = to_pitch,
          .width_bytes = width,
          .height = height};
}

CopyParameters without_devices(const PeerCopyParameters& peer) noexcept {
  return {.from_array = peer.from_array,
          .from_position = peer.from_position,
          .from = peer.from,
          .to_array = peer.to_array,
          .to_position = peer.to_position,
          .to = peer.to,
          .extent = peer.extent};
}

}  // namespace

cuda::Result check(CopyKind kind) noexcept {
  const bool is_known = kind >= CopyKind::host_to_host && kind <= CopyKind::automatic;
  return is_known ? cuda::Result::success
                  : static_cast<cuda::Result>(Error::invalid_copy_direction);
}

cuda::Copy3D driver_copy(const CopyParameters& parameters) noexcept {
  return {.from_x_bytes = parameters.from_position.x,
          .from_y = parameters.from_position.y,
          .from_z = parameters.from_position.z,
          .from_type = type_of(parameters.from_array),
          .from_device = device_pointer(parameters.from.pointer),
          .from_array = parameters.from_array,
          .from_pitch = parameters.from.pitch,
          .from_height = parameters.from.height,
          .to_x_bytes = parameters.to_position.x,
          .to_y = parameters.to_position.y,
          .to_z = parameters.to_position.z,
          .to_type = type_of(parameters.to_array),
          .to_device = device_pointer(parameters.to.pointer),
          .to_array = parameters.to_array,
          .to_pitch = parameters.to.pitch,
          .to_height = parameters.to.height,
          .width_bytes = parameters.extent.width,
          .height = parameters.extent.height,
          .depth = parameters.extent.depth};
}

cuda::Copy3D driver_copy(void* to, const void* from, std::size_t bytes) noexcept {
  return {.from_device = device_pointer(from),
          .to_device = device_pointer(to),
          .width_bytes = bytes,
          .height = 1,
          .depth = 1};
}

extern "C" {

// --- one dimension ------------------------------------------------------------------------------

Error cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, CopyKind kind,
                      cuda::Stream stream) {
  return call([&] {
    const cuda::Result checked = check(kind);
    return checked != cuda::Result::success
               ? checked
               : driver::cuMemcpyAsync(device_pointer(to), device_pointer(from), bytes, stream);
  });
}

Error cudaMemcpy(void* to, const void* from, std::size_t bytes, CopyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}

Error cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                          cuda::Stream stream) {
  return cudaMemcpyAsync(to, from, bytes, CopyKind::automatic, stream);
}

Error cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return cudaMemcpyAsync(to, from, bytes, CopyKind::automatic, nullptr);
}

// --- rows and planes ----------------------------------------------------------------------------

Error cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                        std::size_t width, std::size_t height, CopyKind kind, cuda::Stream stream) {
  if (width > to_pitch || width > from_pitch) {
    constexpr auto invalid_pitch = static_cast<Error>(12);
    return note(invalid_pitch);
  }
  return call([&] {
    const cuda::Copy2D copy = rows(to, to_pitch, from, from_pitch, width, height);
    const cuda::Result checked = check(kind);
    return checked != cuda::Result::success ? checked : driver::cuMemcpy2DAsync_v2(&copy, stream);
  });
}

Error cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                   std::size_t width, std::size_t height, CopyKind kind) {
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
}

Error cudaMemcpy3DAsync(const CopyParameters* parameters, cuda::Stream stream) {
  return call([&] {
    const cuda::Copy3D copy = driver_copy(*parameters);
    return driver::cuMemcpy3DAsync_v2(&copy, stream);
  });
}

Error cudaMemcpy3D(const CopyParameters* parameters) {
  return cudaMemcpy3DAsync(parameters, nullptr);
}

Error cudaMemcpy3DPeerAsync(const PeerCopyParameters* parameters, cuda::Stream stream) {
  const CopyParameters plain = without_devices(*parameters);
  return cudaMemcpy3DAsync(&plain, stream);
}

Error cudaMemcpy3DPeer(const PeerCopyParameters* parameters) {
  return cudaMemcpy3DPeerAsync(parameters, nullptr);
}

// --- symbols ------------------------------------------------------------------------------------

Error cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes,
                              std::size_t offset, CopyKind kind, cuda::Stream stream) {
  return call_with_symbol(symbol, bytes, offset, kind, [&](cuda::DevicePointer address) {
    return driver::cuMemcpyAsync(address, device_pointer(from), bytes, stream);
  });
}

Error cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes,
                         std::size_t offset, CopyKind kind) {
  return cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, nullptr);
}

Error cudaMemcpyFromSymbolAsync(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                                CopyKind kind, cuda::Stream stream) {
  return call_with_symbol(symbol, bytes, offset, kind, [&](cuda::DevicePointer address) {
    return driver::cuMemcpyAsync(device_pointer(to), address, bytes, stream);
  });
}

Error cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                           CopyKind kind) {
  return cudaMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, nullptr);
}

Error cudaGetSymbolAddress(void** pointer, const void* symbol) {
  return call_with_symbol(symbol, 0, 0, CopyKind::automatic, [&](cuda::DevicePointer address) {
    *pointer = host_pointer(address);
    return cuda::Result::success;
  });
}

Error cudaGetSymbolSize(std::size_t* bytes, const void* symbol) {
  return call([&] {
    cuda::DevicePointer address = 0;
    return find_symbol(symbol, address, *bytes);
  });
}

// --- fills --------------------------------------------------------------------------------------

Error cudaMemsetAsync(void* to, int value, std::size_t bytes, cuda::Stream stream) {
  return call([&] {
    return driver::cuMemsetD8Async(device_pointer(to), static_cast<unsigned char>(value), bytes,
                                   stream);
  });
}

Error cudaMemset(void* to, int value, std::size_t bytes) {
  return cudaMemsetAsync(to, value, bytes, nullptr);
}

Error cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width,
                        std::size_t height, cuda::Stream stream) {
  return call([&] {
    return driver::cuMemsetD2D8Async(device_pointer(to), pitch, static_cast<unsigned char>(value),
                                     width, height, stream);
  });
}

Error cudaMemset2D(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height) {
  return cudaMemset2DAsync(to, pitch, value, width, height, nullptr);
}

Error cudaMemset3DAsync(PitchedPointer to, int value, Extent extent, cuda::Stream stream) {
  auto* plane = static_cast<char*>(to.pointer);
  for (std::size_t z = 0; z < extent.depth; ++z, plane += to.pitch * to.height) {
    const Error error =
        cudaMemset2DAsync(plane, to.pitch, value, extent.width, extent.height, stream);
    if (error != Error::success) return error;
  }
  return Error::success;
}

Error cudaMemset3D(PitchedPointer to, int value, Extent extent) {
  return cudaMemset3DAsync(to, value, extent, nullptr);
}

}  // extern "C"
}  // namespace gemmery::drop_in::runtime
