// SPDX-License-Identifier: Apache-2.0
// Virtual memory management: reserved addresses, memory that is mapped to them, access by devices.
// A reservation is an allocation of the device that is current; what is mapped lies in it.
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "drop_in/driver/exports.hpp"
#include "drop_in/driver/state.hpp"
#include "emulator/table.hpp"

namespace gemmery::drop_in {
namespace {

using emulator::EmulatedDevice;

constexpr std::size_t granularity = std::size_t{2} << 20;

// What cuMemCreate makes.
struct Physical {
  std::size_t bytes = 0;
  cuda::DevicePointer mapped_at = 0;  // 0: nowhere
  bool is_released = false;
  std::vector<std::byte> contents;  // while it is mapped nowhere, if it ever was
};

struct Reservation {
  cuda::DevicePointer block = 0;  // the allocation that it lies in
  std::size_t bytes = 0;
};

struct VirtualMemory {
  std::mutex mutex;
  std::map<cuda::MemoryHandle, std::unique_ptr<Physical>> handles;
  std::map<cuda::DevicePointer, Reservation> reservations;
  std::map<cuda::DevicePointer, cuda::MemoryHandle> mappings;
  cuda::MemoryHandle last_handle = 0;
};

VirtualMemory& virtual_memory() {
  static auto* const memory = new VirtualMemory;
  return *memory;
}

[[noreturn]] void refuse_value(std::string words) {
  throw Refusal{cuda::Result::invalid_value, std::move(words)};
}

void require_granules(std::size_t bytes) {
  if (bytes == 0 || bytes % granularity != 0)
    refuse_value(fmt::format("{} bytes; expected a multiple of {}", bytes, granularity));
}

emulator::GlobalMemory& memory_at(cuda::DevicePointer pointer) {
  if (const Owner owner = owner_of(pointer); owner.memory != nullptr) return *owner.memory;
  refuse_value(fmt::format("{:#x} is not in reserved memory", pointer));
}

EmulatedDevice& device_of_reservation() {
  const cuda::Context context = emulator::current_context();
  return context == nullptr ? emulator::device_at(0) : *context->device;
}

// The functions below hold the mutex.
Physical& physical_of(VirtualMemory& memory, cuda::MemoryHandle handle) {
  const auto found = memory.handles.find(handle);
  if (found == memory.handles.end() || found->second->is_released)
    refuse_value("a handle that is not one of cuMemCreate, or was released");
  return *found->second;
}

bool is_reserved(const VirtualMemory& memory, cuda::DevicePointer pointer, std::size_t bytes) {
  auto after = memory.reservations.upper_bound(pointer);
  if (after == memory.reservations.begin()) return false;
  const auto& [begin, reservation] = *--after;
  return pointer + bytes <= begin + reservation.bytes;
}

// The first mapping that lies in the range, in part or as a whole.
auto first_mapping(VirtualMemory& memory, cuda::DevicePointer pointer, std::size_t bytes) {
  auto at = memory.mappings.upper_bound(pointer);
  if (at != memory.mappings.begin()) {
    const auto before = std::prev(at);
    if (before->first + memory.handles.at(before->second)->bytes > pointer) return before;
  }
  return at != memory.mappings.end() && at->first < pointer + bytes ? at : memory.mappings.end();
}

void map(VirtualMemory& memory, cuda::DevicePointer pointer, std::size_t bytes,
         cuda::MemoryHandle handle) {
  Physical& physical = physical_of(memory, handle);
  if (physical.mapped_at != 0)
    throw Refusal{cuda::Result::not_supported, "memory that is mapped twice is not emulated"};
  if (bytes != physical.bytes)
    refuse_value(fmt::format("{} bytes; the handle has {}", bytes, physical.bytes));
  if (!is_reserved(memory, pointer, bytes)) refuse_value("the range is not reserved");
  if (first_mapping(memory, pointer, bytes) != memory.mappings.end())
    refuse_value("something is mapped there");
  if (!physical.contents.empty() &&
      !memory_at(pointer).copy_in(pointer, physical.contents.data(), bytes))
    refuse_value("the range is not in one reservation");
  physical.contents.clear();
  physical.mapped_at = pointer;
  memory.mappings[pointer] = handle;
}

void unmap_one(VirtualMemory& memory, cuda::DevicePointer pointer, cuda::MemoryHandle handle) {
  Physical& physical = *memory.handles.at(handle);
  emulator::GlobalMemory& bytes = memory_at(pointer);
  if (!physical.is_released) {
    physical.contents.resize(physical.bytes);
    if (!bytes.copy_out(physical.contents.data(), pointer, physical.bytes))
      refuse_value("the mapping is not in memory");
  }
  if (!bytes.make_unwritten(pointer, physical.bytes)) refuse_value("the mapping is not in memory");
  physical.mapped_at = 0;
  if (physical.is_released) memory.handles.erase(handle);
}

void unmap(VirtualMemory& memory, cuda::DevicePointer pointer, std::size_t bytes) {
  auto at = first_mapping(memory, pointer, bytes);
  if (at == memory.mappings.end()) refuse_value("nothing is mapped there");
  for (; at != memory.mappings.end() && at->first < pointer + bytes; at = memory.mappings.erase(at))
    unmap_one(memory, at->first, at->second);
}

cuda::DevicePointer reserve(VirtualMemory& memory, std::size_t bytes, std::size_t alignment) {
  constexpr std::size_t usual_alignment = 256;
  require_granules(bytes);
  const std::size_t slack = alignment > usual_alignment ? alignment : 0;
  const cuda::DevicePointer block =
      emulator::allocate(default_pool(device_of_reservation()), bytes + slack);
  const cuda::DevicePointer pointer =
      slack == 0 ? block : (block + alignment - 1) / alignment * alignment;
  memory.reservations[pointer] = {.block = block, .bytes = bytes};
  return pointer;
}

void free_reservation(VirtualMemory& memory, cuda::DevicePointer pointer, std::size_t bytes) {
  const auto found = memory.reservations.find(pointer);
  if (found == memory.reservations.end() || found->second.bytes != bytes)
    refuse_value("no reservation begins there and has so many bytes");
  if (first_mapping(memory, pointer, bytes) != memory.mappings.end())
    refuse_value("something is still mapped there");
  emulator::free_block(found->second.block);
  memory.reservations.erase(found);
}

void release(VirtualMemory& memory, cuda::MemoryHandle handle) {
  Physical& physical = physical_of(memory, handle);
  physical.is_released = true;
  if (physical.mapped_at == 0) memory.handles.erase(handle);
}

template <class Change>
cuda::Result answer_locked(const char* function, Change change) noexcept {
  return answer(function, [&] {
    const std::lock_guard lock(virtual_memory().mutex);
    change(virtual_memory());
  });
}

}  // namespace
}  // namespace gemmery::drop_in

namespace gemmery::driver {

using drop_in::answer_locked;
using drop_in::require;
using drop_in::VirtualMemory;

extern "C" {

cuda::Result cuMemGetAllocationGranularity(std::size_t* bytes, const cuda::MemPhysicalProps*, int) {
  return drop_in::answer("cuMemGetAllocationGranularity",
                         [&] { require(bytes) = drop_in::granularity; });
}

cuda::Result cuMemCreate(cuda::MemoryHandle* handle, std::size_t bytes,
                         const cuda::MemPhysicalProps* properties, unsigned long long) {
  return answer_locked("cuMemCreate", [&](VirtualMemory& memory) {
    emulator::device_of(require(properties).location.id);
    drop_in::require_granules(bytes);
    require(handle) = ++memory.last_handle;
    memory.handles[*handle] = std::make_unique<drop_in::Physical>();
    memory.handles[*handle]->bytes = bytes;
  });
}

cuda::Result cuMemRelease(cuda::MemoryHandle handle) {
  return answer_locked("cuMemRelease",
                       [&](VirtualMemory& memory) { drop_in::release(memory, handle); });
}

cuda::Result cuMemAddressReserve(cuda::DevicePointer* pointer, std::size_t bytes,
                                 std::size_t alignment, cuda::DevicePointer, unsigned long long) {
  return answer_locked("cuMemAddressReserve", [&](VirtualMemory& memory) {
    require(pointer) = drop_in::reserve(memory, bytes, alignment);
  });
}

cuda::Result cuMemAddressFree(cuda::DevicePointer pointer, std::size_t bytes) {
  return answer_locked("cuMemAddressFree", [&](VirtualMemory& memory) {
    drop_in::free_reservation(memory, pointer, bytes);
  });
}

cuda::Result cuMemMap(cuda::DevicePointer pointer, std::size_t bytes, std::size_t offset,
                      cuda::MemoryHandle handle, unsigned long long) {
  return answer_locked("cuMemMap", [&](VirtualMemory& memory) {
    if (offset != 0) drop_in::refuse_value("an offset other than 0");
    drop_in::map(memory, pointer, bytes, handle);
  });
}

cuda::Result cuMemUnmap(cuda::DevicePointer pointer, std::size_t bytes) {
  return answer_locked("cuMemUnmap",
                       [&](VirtualMemory& memory) { drop_in::unmap(memory, pointer, bytes); });
}

cuda::Result cuMemSetAccess(cuda::DevicePointer pointer, std::size_t, const cuda::MemAccess* access,
                            std::size_t count) {
  return drop_in::answer("cuMemSetAccess", [&] {
    emulator::GlobalMemory& memory = drop_in::memory_at(pointer);
    for (std::size_t index = 0; index < count; ++index) {
      emulator::EmulatedDevice& device = emulator::device_of(access[index].location.id);
      if (&device.memory != &memory && access[index].flags != 0) device.memory.add_peer(memory);
    }
  });
}

}  // extern "C"
}  // namespace gemmery::driver
