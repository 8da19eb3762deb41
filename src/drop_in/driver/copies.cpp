// SPDX-License-Identifier: Apache-2.0
// Copies and fills of one, two and three dimensions.
#include "drop_in/driver/tasks.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "drop_in/driver/exports.hpp"
#include "drop_in/driver/state.hpp"

namespace gemmery::drop_in {
namespace {

void* pointer_of(std::uint64_t address) noexcept {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

// --- one dimension ------------------------------------------------------------------------------

void copy_out(void* to, const Owner& owner, std::uint64_t from, std::size_t bytes) {
  if (!owner.memory->copy_out(to, from, bytes))
    emulator::refuse_range(*owner.memory, owner.name(), "copy of", from, bytes);
}

void copy_in(const Owner& owner, std::uint64_t to, const void* from, std::size_t bytes) {
  if (!owner.memory->copy_in(to, from, bytes))
    emulator::refuse_range(*owner.memory, owner.name(), "copy to", to, bytes);
}

// Within one memory, which keeps what was written apart from what was not.
void copy_within(const Owner& owner, std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  if (owner.memory->copy(to, from, bytes)) return;
  const auto extent = owner.memory->find(from);
  const bool is_source_good = extent && bytes <= extent->bytes - (from - extent->address);
  emulator::refuse_range(*owner.memory, owner.name(), is_source_good ? "copy to" : "copy of",
                         is_source_good ? to : from, bytes);
}

void copy_between(const Owner& target, std::uint64_t to, const Owner& source, std::uint64_t from,
                  std::size_t bytes) {
  const auto staging = std::make_unique<std::byte[]>(bytes);
  copy_out(staging.get(), source, from, bytes);
  copy_in(target, to, staging.get(), bytes);
}

// --- tasks --------------------------------------------------------------------------------------

cuda::Copy3D rows_of(const cuda::Copy2D& copy) {
  return {.from_x_bytes = copy.from_x_bytes,
          .from_y = copy.from_y,
          .from_type = copy.from_type,
          .from_host = copy.from_host,
          .from_device = copy.from_device,
          .from_array = copy.from_array,
          .from_pitch = copy.from_pitch,
          .to_x_bytes = copy.to_x_bytes,
          .to_y = copy.to_y,
          .to_type = copy.to_type,
          .to_host = copy.to_host,
          .to_device = copy.to_device,
          .to_array = copy.to_array,
          .to_pitch = copy.to_pitch,
          .width_bytes = copy.width_bytes,
          .height = copy.height,
          .depth = 1};
}

// One side of a copy: where a row begins.
struct Side {
  std::uint64_t begin = 0;
  std::size_t pitch = 0, plane = 0;
  std::uint64_t row(std::size_t y, std::size_t z) const noexcept {
    return begin + z * plane + y * pitch;
  }
};

Side side_of(cuda::MemoryType type, const void* host, cuda::DevicePointer device, std::size_t pitch,
             std::size_t height, const cuda::Copy3D& copy, std::size_t x_bytes, std::size_t y,
             std::size_t z) {
  if (type == cuda::MemoryType::array)
    throw Refusal{cuda::Result::not_supported, "arrays (textures and surfaces) are not emulated"};
  const std::size_t row_pitch = pitch == 0 ? copy.width_bytes : pitch;
  if (row_pitch < copy.width_bytes && copy.height > 1)
    throw Refusal{cuda::Result::invalid_value, "a pitch below the width of a row"};
  const std::size_t plane = row_pitch * (height == 0 ? copy.height : height);
  const std::uint64_t base = type == cuda::MemoryType::host ? address_of(host) : device;
  return {base + x_bytes + y * row_pitch + z * plane, row_pitch, plane};
}

void run(const cuda::Copy3D& copy, const Side& to, const Side& from) {
  const bool is_dense = to.pitch == copy.width_bytes && from.pitch == copy.width_bytes &&
                        to.plane == from.plane && to.plane == copy.width_bytes * copy.height;
  if (is_dense)
    return copy_bytes(to.begin, from.begin, copy.width_bytes * copy.height * copy.depth);
  for (std::size_t z = 0; z < copy.depth; ++z) {
    for (std::size_t y = 0; y < copy.height; ++y)
      copy_bytes(to.row(y, z), from.row(y, z), copy.width_bytes);
  }
}

cuda::Result put_on(const char* function, cuda::Stream stream,
                    const std::function<emulator::Task()>& make) {
  return answer_on_device(function, [&] { emulator::put(stream, make()); });
}

cuda::Fill2D row_of(cuda::DevicePointer to, unsigned value, unsigned element_bytes,
                    std::size_t count) {
  return {.to = to, .value = value, .element_bytes = element_bytes, .width = count};
}

}  // namespace

void copy_bytes(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  if (bytes == 0) return;
  const Owner target = owner_of(to);
  const Owner source = owner_of(from);
  if (target.memory == nullptr && source.memory == nullptr) {
    std::memmove(pointer_of(to), pointer_of(from), bytes);
  } else if (target.memory == nullptr) {
    copy_out(pointer_of(to), source, from, bytes);
  } else if (source.memory == nullptr) {
    copy_in(target, to, pointer_of(from), bytes);
  } else if (target.memory == source.memory) {
    copy_within(target, to, from, bytes);
  } else {
    copy_between(target, to, source, from, bytes);
  }
  if (target.device == nullptr && source.device != nullptr)
    source.device->note_host_read(from, bytes);
}

void fill_bytes(std::uint64_t to, unsigned value, unsigned element_bytes, std::size_t count) {
  const std::size_t bytes = count * element_bytes;
  const Owner target = owner_of(to);
  std::vector<std::byte> pattern(element_bytes == 1 ? 0 : bytes);
  for (std::size_t at = 0; at + element_bytes <= pattern.size(); at += element_bytes)
    std::memcpy(pattern.data() + at, &value, element_bytes);
  if (!pattern.empty()) return copy_bytes(to, address_of(pattern.data()), bytes);
  if (target.memory == nullptr) {
    std::memset(pointer_of(to), static_cast<int>(value & 0xff), bytes);
  } else if (!target.memory->fill(to, static_cast<std::uint8_t>(value), bytes)) {
    emulator::refuse_range(*target.memory, target.name(), "fill of", to, bytes);
  }
}

emulator::Task copy_task(const cuda::Copy3D& copy) {
  const Side to = side_of(copy.to_type, copy.to_host, copy.to_device, copy.to_pitch, copy.to_height,
                          copy, copy.to_x_bytes, copy.to_y, copy.to_z);
  const Side from = side_of(copy.from_type, copy.from_host, copy.from_device, copy.from_pitch,
                            copy.from_height, copy, copy.from_x_bytes, copy.from_y, copy.from_z);
  return {emulator::NodeKind::copy, [=] { run(copy, to, from); }, copy};
}

emulator::Task copy_task(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  return copy_task(cuda::Copy3D{
      .from_device = from, .to_device = to, .width_bytes = bytes, .height = 1, .depth = 1});
}

emulator::Task fill_task(const cuda::Fill2D& fill) {
  if (fill.element_bytes != 1 && fill.element_bytes != 2 && fill.element_bytes != 4)
    throw Refusal{cuda::Result::invalid_value, "elements of 1, 2 or 4 bytes are filled"};
  return {emulator::NodeKind::fill,
          [=] {
            for (std::size_t y = 0; y < std::max<std::size_t>(fill.height, 1); ++y)
              fill_bytes(fill.to + y * fill.pitch, fill.value, fill.element_bytes, fill.width);
          },
          fill};
}

}  // namespace gemmery::drop_in

namespace gemmery::driver {

using drop_in::answer_on_device;
using drop_in::copy_task;
using drop_in::fill_task;

extern "C" {

// --- copies -------------------------------------------------------------------------------------

cuda::Result cuMemcpyAsync(cuda::DevicePointer to, cuda::DevicePointer from, std::size_t bytes,
                           cuda::Stream stream) {
  return drop_in::put_on("cuMemcpyAsync", stream, [&] { return copy_task(to, from, bytes); });
}

cuda::Result cuMemcpy(cuda::DevicePointer to, cuda::DevicePointer from, std::size_t bytes) {
  return cuMemcpyAsync(to, from, bytes, nullptr);
}

cuda::Result cuMemcpyHtoDAsync_v2(cuda::DevicePointer to, const void* from, std::size_t bytes,
                                  cuda::Stream stream) {
  return cuMemcpyAsync(to, drop_in::address_of(from), bytes, stream);
}

cuda::Result cuMemcpyDtoHAsync_v2(void* to, cuda::DevicePointer from, std::size_t bytes,
                                  cuda::Stream stream) {
  return cuMemcpyAsync(drop_in::address_of(to), from, bytes, stream);
}

cuda::Result cuMemcpyDtoDAsync_v2(cuda::DevicePointer to, cuda::DevicePointer from,
                                  std::size_t bytes, cuda::Stream stream) {
  return cuMemcpyAsync(to, from, bytes, stream);
}

cuda::Result cuMemcpyHtoD_v2(cuda::DevicePointer to, const void* from, std::size_t bytes) {
  return cuMemcpyAsync(to, drop_in::address_of(from), bytes, nullptr);
}

cuda::Result cuMemcpyDtoH_v2(void* to, cuda::DevicePointer from, std::size_t bytes) {
  return cuMemcpyAsync(drop_in::address_of(to), from, bytes, nullptr);
}

cuda::Result cuMemcpyDtoD_v2(cuda::DevicePointer to, cuda::DevicePointer from, std::size_t bytes) {
  return cuMemcpyAsync(to, from, bytes, nullptr);
}

cuda::Result cuMemcpyPeer(cuda::DevicePointer to, cuda::Context, cuda::DevicePointer from,
                          cuda::Context, std::size_t bytes) {
  return cuMemcpyAsync(to, from, bytes, nullptr);
}

cuda::Result cuMemcpyPeerAsync(cuda::DevicePointer to, cuda::Context, cuda::DevicePointer from,
                               cuda::Context, std::size_t bytes, cuda::Stream stream) {
  return cuMemcpyAsync(to, from, bytes, stream);
}

cuda::Result cuMemcpy3DAsync_v2(const cuda::Copy3D* copy, cuda::Stream stream) {
  return drop_in::put_on("cuMemcpy3DAsync", stream,
                         [&] { return copy_task(drop_in::require(copy)); });
}

cuda::Result cuMemcpy3D_v2(const cuda::Copy3D* copy) { return cuMemcpy3DAsync_v2(copy, nullptr); }

cuda::Result cuMemcpy2DAsync_v2(const cuda::Copy2D* copy, cuda::Stream stream) {
  return drop_in::put_on("cuMemcpy2DAsync", stream,
                         [&] { return copy_task(drop_in::rows_of(drop_in::require(copy))); });
}

cuda::Result cuMemcpy2D_v2(const cuda::Copy2D* copy) { return cuMemcpy2DAsync_v2(copy, nullptr); }

cuda::Result cuMemcpy2DUnaligned_v2(const cuda::Copy2D* copy) {
  return cuMemcpy2DAsync_v2(copy, nullptr);
}

// --- fills --------------------------------------------------------------------------------------

cuda::Result cuMemsetD8Async(cuda::DevicePointer to, unsigned char value, std::size_t count,
                             cuda::Stream stream) {
  return drop_in::put_on("cuMemsetD8Async", stream,
                         [&] { return fill_task(drop_in::row_of(to, value, 1, count)); });
}

cuda::Result cuMemsetD16Async(cuda::DevicePointer to, unsigned short value, std::size_t count,
                              cuda::Stream stream) {
  return drop_in::put_on("cuMemsetD16Async", stream,
                         [&] { return fill_task(drop_in::row_of(to, value, 2, count)); });
}

cuda::Result cuMemsetD32Async(cuda::DevicePointer to, unsigned value, std::size_t count,
                              cuda::Stream stream) {
  return drop_in::put_on("cuMemsetD32Async", stream,
                         [&] { return fill_task(drop_in::row_of(to, value, 4, count)); });
}

cuda::Result cuMemsetD8_v2(cuda::DevicePointer to, unsigned char value, std::size_t count) {
  return cuMemsetD8Async(to, value, count, nullptr);
}

cuda::Result cuMemsetD16_v2(cuda::DevicePointer to, unsigned short value, std::size_t count) {
  return cuMemsetD16Async(to, value, count, nullptr);
}

cuda::Result cuMemsetD32_v2(cuda::DevicePointer to, unsigned value, std::size_t count) {
  return cuMemsetD32Async(to, value, count, nullptr);
}

cuda::Result cuMemsetD2D8Async(cuda::DevicePointer to, std::size_t pitch, unsigned char value,
                               std::size_t width, std::size_t height, cuda::Stream stream) {
  return drop_in::put_on("cuMemsetD2D8Async", stream, [&] {
    return fill_task({to, pitch, value, 1, width, height});
  });
}

cuda::Result cuMemsetD2D32Async(cuda::DevicePointer to, std::size_t pitch, unsigned value,
                                std::size_t width, std::size_t height, cuda::Stream stream) {
  return drop_in::put_on("cuMemsetD2D32Async", stream, [&] {
    return fill_task({to, pitch, value, 4, width, height});
  });
}

cuda::Result cuMemsetD2D8_v2(cuda::DevicePointer to, std::size_t pitch, unsigned char value,
                             std::size_t width, std::size_t height) {
  return cuMemsetD2D8Async(to, pitch, value, width, height, nullptr);
}

cuda::Result cuMemsetD2D32_v2(cuda::DevicePointer to, std::size_t pitch, unsigned value,
                              std::size_t width, std::size_t height) {
  return cuMemsetD2D32Async(to, pitch, value, width, height, nullptr);
}

}  // extern "C"
}  // namespace gemmery::driver
