// SPDX-License-Identifier: Apache-2.0
// Pools, copies, fills. Allocations have exactly the requested size, so that the first byte after
// one is out of bounds.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "emulator/handles.hpp"
#include "emulator/table.hpp"

namespace gemmery::emulator {
namespace {

// --- allocations --------------------------------------------------------------------------------

std::uint64_t& pool_value(cuda::MemoryPoolHandle& pool, cuda::MemPoolAttribute attribute) {
  switch (attribute) {
    case cuda::MemPoolAttribute::release_threshold:
      return pool.release_threshold;
    case cuda::MemPoolAttribute::reserved_bytes:
    case cuda::MemPoolAttribute::used_bytes:
      return pool.used;
    case cuda::MemPoolAttribute::reserved_peak_bytes:
    case cuda::MemPoolAttribute::used_peak_bytes:
      return pool.used_peak;
  }
  throw Refusal{cuda::Result::invalid_value, "a pool attribute that is not emulated"};
}

void count(cuda::DevicePointer pointer, cuda::MemoryPool pool, std::uint64_t bytes) {
  const std::lock_guard lock(handles().mutex);
  handles().blocks[pointer] = {pool, bytes};
  pool->used += bytes;
  pool->used_peak = std::max(pool->used_peak, pool->used);
}

// --- copies -------------------------------------------------------------------------------------

[[noreturn]] void refuse_range(const EmulatedDevice& device, const char* what,
                               std::uint64_t address, std::uint64_t bytes) {
  emulator::refuse_range(device.memory, to_string(device.device), what, address, bytes);
}

// The two sides of a copy, or the one of a fill.
struct Range {
  EmulatedDevice* device;
  std::uint64_t address;
};

void copy_in(Range to, const void* from, std::uint64_t bytes) {
  if (!to.device->memory.copy_in(to.address, from, bytes))
    refuse_range(*to.device, "copy to", to.address, bytes);
}

void copy_out(void* to, Range from, std::uint64_t bytes) {
  if (!from.device->memory.copy_out(to, from.address, bytes))
    refuse_range(*from.device, "copy of", from.address, bytes);
  from.device->note_host_read(from.address, bytes);
}

void copy_within(Range to, std::uint64_t from, std::uint64_t bytes) {
  if (to.device->memory.copy(to.address, from, bytes)) return;
  const auto source = to.device->memory.find(from);
  const bool is_source_good = source && bytes <= source->bytes - (from - source->address);
  refuse_range(*to.device, is_source_good ? "copy to" : "copy of",
               is_source_good ? to.address : from, bytes);
}

void copy_between(Range to, Range from, std::uint64_t bytes) {
  if (to.device == from.device) return copy_within(to, from.address, bytes);
  const auto staging = std::make_unique<std::byte[]>(bytes);
  if (!from.device->memory.copy_out(staging.get(), from.address, bytes))
    refuse_range(*from.device, "copy of", from.address, bytes);
  copy_in(to, staging.get(), bytes);
}

void fill(Range to, std::uint8_t value, std::uint64_t bytes) {
  if (!to.device->memory.fill(to.address, value, bytes))
    refuse_range(*to.device, "fill of", to.address, bytes);
}

}  // namespace

cuda::DevicePointer allocate(cuda::MemoryPoolHandle& pool, std::uint64_t bytes) {
  if (bytes == 0) throw Refusal{cuda::Result::invalid_value, {}};
  EmulatedDevice& device = *pool.device;
  const std::lock_guard lock(device.executing);
  const std::uint64_t address = device.memory.allocate(bytes);
  if (address == 0) {
    throw Refusal{
        cuda::Result::out_of_memory,
        fmt::format("{} bytes beside {} in use; emulated memory is memory of this machine", bytes,
                    device.memory.used_bytes())};
  }
  count(address, &pool, bytes);
  return address;
}

void free_block(cuda::DevicePointer pointer) {
  EmulatedDevice* device = nullptr;
  {
    const std::lock_guard lock(handles().mutex);
    const auto found = handles().blocks.find(pointer);
    if (found == handles().blocks.end())
      throw Refusal{cuda::Result::invalid_value,
                    fmt::format("{:#x} is not the start of an allocation", pointer)};
    found->second.pool->used -= found->second.bytes;
    device = found->second.pool->device;
    handles().blocks.erase(found);
  }
  const std::lock_guard lock(device->executing);
  device->forget_host_reads(pointer);
  device->memory.free(pointer);
}

void refuse_range(const GlobalMemory& memory, const std::string& name, const char* what,
                  std::uint64_t address, std::uint64_t bytes) {
  const auto extent = memory.find(address);
  const std::string place = extent ? fmt::format("the allocation there has {} bytes from {:#x} on",
                                                 extent->bytes, extent->address)
                                   : "no allocation holds that address";
  throw Refusal{
      cuda::Result::invalid_value,
      fmt::format("{} {} bytes at {:#x}: expected them inside of one allocation of {}, {}", what,
                  bytes, address, name, place)};
}

namespace calls {

cuda::Result cuMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return answer([&] {
    const EmulatedDevice& device = current_device();
    *total_bytes = static_cast<std::size_t>(device.info.memory_bytes);
    *free_bytes = *total_bytes - std::min<std::size_t>(*total_bytes, device.memory.used_bytes());
  });
}

// --- pools --------------------------------------------------------------------------------------

cuda::Result cuMemPoolCreate(cuda::MemoryPool* pool, const cuda::MemPoolProps* properties) {
  return answer([&] {
    refuse_in_capture("cuMemPoolCreate");
    *pool = new cuda::MemoryPoolHandle{.device = &device_of(properties->location.id)};
  });
}

cuda::Result cuMemPoolTrimTo(cuda::MemoryPool, std::size_t) { return cuda::Result::success; }

cuda::Result cuMemPoolSetAttribute(cuda::MemoryPool pool, cuda::MemPoolAttribute attribute,
                                   void* value) {
  return answer([&] {
    const std::lock_guard lock(handles().mutex);
    const std::uint64_t asked = *static_cast<const std::uint64_t*>(value);
    if (attribute == cuda::MemPoolAttribute::release_threshold) {
      pool->release_threshold = asked;
    } else if (attribute == cuda::MemPoolAttribute::used_peak_bytes ||
               attribute == cuda::MemPoolAttribute::reserved_peak_bytes) {
      pool->used_peak = pool->used;  // the manual: may be reset, nothing else
    } else {
      throw Refusal{cuda::Result::invalid_value, "a pool attribute that is only read"};
    }
  });
}

cuda::Result cuMemPoolGetAttribute(cuda::MemoryPool pool, cuda::MemPoolAttribute attribute,
                                   void* value) {
  return answer([&] {
    const std::lock_guard lock(handles().mutex);
    *static_cast<std::uint64_t*>(value) = pool_value(*pool, attribute);
  });
}

cuda::Result cuMemAllocFromPoolAsync(cuda::DevicePointer* pointer, std::size_t bytes,
                                     cuda::MemoryPool pool, cuda::Stream stream) {
  return answer([&] {
    refuse_on_captured_stream(stream, "cuMemAllocFromPoolAsync");
    if (pool == nullptr) throw Refusal{cuda::Result::invalid_value, {}};
    *pointer = allocate(*pool, bytes);
  });
}

cuda::Result cuMemFreeAsync(cuda::DevicePointer pointer, cuda::Stream stream) {
  return answer([&] {
    refuse_on_captured_stream(stream, "cuMemFreeAsync");
    free_block(pointer);
  });
}

// --- copies and fills ---------------------------------------------------------------------------

cuda::Result cuMemcpyHtoDAsync(cuda::DevicePointer to, const void* from, std::size_t bytes,
                               cuda::Stream stream) {
  return answer([&] {
    Range range{&current_device(), to};
    put(stream, {NodeKind::copy, [=] { copy_in(range, from, bytes); }});
  });
}

cuda::Result cuMemcpyDtoHAsync(void* to, cuda::DevicePointer from, std::size_t bytes,
                               cuda::Stream stream) {
  return answer([&] {
    Range range{&current_device(), from};
    put(stream, {NodeKind::copy, [=] { copy_out(to, range, bytes); }});
  });
}

cuda::Result cuMemcpyDtoDAsync(cuda::DevicePointer to, cuda::DevicePointer from, std::size_t bytes,
                               cuda::Stream stream) {
  return answer([&] {
    Range range{&current_device(), to};
    put(stream, {NodeKind::copy, [=] { copy_within(range, from, bytes); }});
  });
}

cuda::Result cuMemcpyPeerAsync(cuda::DevicePointer to, cuda::Context to_context,
                               cuda::DevicePointer from, cuda::Context from_context,
                               std::size_t bytes, cuda::Stream stream) {
  return answer([&] {
    if (to_context == nullptr || from_context == nullptr)
      throw Refusal{cuda::Result::invalid_context, {}};
    Range target{to_context->device, to};
    Range source{from_context->device, from};
    put(stream, {NodeKind::copy, [=] { copy_between(target, source, bytes); }});
  });
}

cuda::Result cuMemsetD8Async(cuda::DevicePointer to, unsigned char value, std::size_t bytes,
                             cuda::Stream stream) {
  return answer([&] {
    Range range{&current_device(), to};
    put(stream, {NodeKind::fill, [=] { fill(range, value, bytes); }});
  });
}

}  // namespace calls
}  // namespace gemmery::emulator
