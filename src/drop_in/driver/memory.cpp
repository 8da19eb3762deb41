// SPDX-License-Identifier: Apache-2.0
// Memory of devices and pools; memory that host and devices share; what is known of a pointer.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "drop_in/driver/exports.hpp"
#include "drop_in/driver/state.hpp"
#include "drop_in/driver/tasks.hpp"

namespace gemmery::drop_in {
namespace {

// --- shared with the host -----------------------------------------------------------------------

HostBlock allocate_shared(std::size_t bytes, unsigned flags, bool is_managed) {
  if (bytes == 0) throw Refusal{cuda::Result::invalid_value, {}};
  const std::uint64_t address = emulator::host_memory().allocate_mapped(bytes);
  if (address == 0) throw Refusal{cuda::Result::out_of_memory, {}};
  const HostBlock block{.address = address,
                        .host = reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)),
                        .bytes = bytes,
                        .flags = flags,
                        .is_managed = is_managed};
  const std::lock_guard lock(state().mutex);
  state().host_blocks[address] = block;
  return block;
}

HostBlock register_block(void* host, std::size_t bytes, unsigned flags) {
  if (host == nullptr || bytes == 0) throw Refusal{cuda::Result::invalid_value, {}};
  if (find_host_block(address_of(host)))
    throw Refusal{cuda::Result::host_memory_already_registered, {}};
  const HostBlock block{.address = emulator::host_memory().adopt(host, bytes),
                        .host = host,
                        .bytes = bytes,
                        .flags = flags,
                        .is_registered = true};
  const std::lock_guard lock(state().mutex);
  state().host_blocks[block.address] = block;
  return block;
}

// Throws Refusal (`otherwise`) if no block of that kind begins there.
void release_block(void* host, bool is_registered, cuda::Result otherwise) {
  const auto block = find_host_block(address_of(host));
  if (!block || block->host != host || block->is_registered != is_registered)
    throw Refusal{otherwise, {}};
  {
    const std::lock_guard lock(state().mutex);
    state().host_blocks.erase(block->address);
  }
  emulator::host_memory().free(block->address);
}

HostBlock require_block(const void* host) {
  if (const auto block = find_host_block(address_of(host))) return *block;
  throw Refusal{cuda::Result::invalid_value, {}};
}

// --- devices' -----------------------------------------------------------------------------------

// Allocates or frees a block of a graph: its contents count as unwritten from there on. False if
// no block of a graph begins there.
bool change_graph_block(cuda::DevicePointer pointer, bool is_live) {
  std::size_t bytes = 0;
  {
    const std::lock_guard lock(state().mutex);
    const auto found = state().graph_blocks.find(pointer);
    if (found == state().graph_blocks.end()) return false;
    found->second.is_live = is_live;
    bytes = found->second.bytes;
  }
  return owner_of(pointer).memory->make_unwritten(pointer, bytes);
}

void free_device_memory(cuda::DevicePointer pointer) {
  if (pointer == 0) return;
  if (const auto block = find_host_block(pointer); block && block->is_managed)
    return release_block(block->host, false, cuda::Result::invalid_value);
  if (!change_graph_block(pointer, false)) emulator::free_block(pointer);
}

// What is live when its graph ends is the program's to free.
void end_graph_block(cuda::DevicePointer pointer) {
  const auto is_live = [pointer] {
    const std::lock_guard lock(state().mutex);
    return state().graph_blocks.extract(pointer).mapped().is_live;
  };
  if (!is_live()) emulator::free_block(pointer);
}

// An allocation of a captured stream, or of a graph: made now and kept as long as a node has it.
std::shared_ptr<cuda::DevicePointer> kept_allocation(std::size_t bytes) {
  const cuda::DevicePointer pointer =
      emulator::allocate(current_pool(emulator::current_device()), bytes);
  {
    const std::lock_guard lock(state().mutex);
    state().graph_blocks[pointer] = {.bytes = bytes};
  }
  return {new cuda::DevicePointer(pointer), [](cuda::DevicePointer* kept) {
            answer("cuGraphDestroy", [kept] { end_graph_block(*kept); });
            delete kept;
          }};
}

bool is_captured(cuda::Stream stream) {
  const std::lock_guard lock(emulator::handles().mutex);
  return emulator::resolve(stream).capture != nullptr;
}

cuda::DevicePointer allocate_on(cuda::Stream stream, cuda::MemoryPoolHandle& pool,
                                std::size_t bytes) {
  if (!is_captured(stream)) return emulator::allocate(pool, bytes);
  cuda::DevicePointer pointer = 0;
  emulator::put(stream, allocation_task(bytes, pointer));
  return pointer;
}

void free_on(cuda::Stream stream, cuda::DevicePointer pointer) {
  if (is_captured(stream)) {
    emulator::put(stream, free_task(pointer));
  } else {
    free_device_memory(pointer);
  }
}

// --- pointers -----------------------------------------------------------------------------------

// CUpointer_attribute
enum PointerAttribute : int {
  pointer_context = 1,
  pointer_memory_type = 2,
  pointer_on_device = 3,
  pointer_on_host = 4,
  pointer_synchronises = 6,
  pointer_buffer_id = 7,
  pointer_is_managed = 8,
  pointer_ordinal = 9,
  pointer_begin = 11,
  pointer_bytes = 12,
  pointer_is_mapped = 13,
};

// What is known of an address.
struct PointerFacts {
  std::optional<HostBlock> block;
  EmulatedDevice* device = nullptr;
  std::uint64_t begin = 0, bytes = 0;
};

// Throws Refusal (invalid_value) for memory that CUDA does not know.
PointerFacts facts_of(cuda::DevicePointer pointer) {
  if (auto block = find_host_block(pointer))
    return {block, &emulator::current_device(), block->address, block->bytes};
  const Owner owner = owner_of(pointer);
  const auto extent = owner.memory == nullptr ? std::nullopt : owner.memory->find(pointer);
  if (!extent) throw Refusal{cuda::Result::invalid_value, {}};
  EmulatedDevice* const device =
      owner.device == nullptr ? &emulator::current_device() : owner.device;
  return {std::nullopt, device, extent->address, extent->bytes};
}

template <class T>
void give(void* value, T given) {
  std::memcpy(&require(static_cast<char*>(value)), &given, sizeof given);
}

void read_attribute(void* value, int attribute, cuda::DevicePointer pointer) {
  const PointerFacts facts = facts_of(pointer);
  const bool is_host = facts.block.has_value();
  const bool is_managed = is_host && facts.block->is_managed;
  const std::uint64_t offset = is_host && pointer < facts.begin
                                   ? pointer - address_of(facts.block->host)
                                   : pointer - facts.begin;
  switch (attribute) {
    case pointer_context:
      return give(value,
                  &emulator::handles().contexts[static_cast<std::size_t>(facts.device->ordinal)]);
    case pointer_memory_type:
      return give(value,
                  is_host && !is_managed ? cuda::MemoryType::host : cuda::MemoryType::device);
    case pointer_on_device:
      return give(value, facts.begin + offset);
    case pointer_on_host:
      return give(value, is_host ? static_cast<char*>(facts.block->host) + offset : nullptr);
    case pointer_is_managed:
      return give(value, static_cast<unsigned>(is_managed));
    case pointer_synchronises:
      return give(value, 0U);
    case pointer_buffer_id:
      return give(value, facts.begin);
    case pointer_ordinal:
      return give(value, facts.device->ordinal);
    case pointer_begin:
      return give(value, facts.begin);
    case pointer_bytes:
      return give(value, static_cast<std::size_t>(facts.bytes));
    case pointer_is_mapped:
      return give(value, 1U);
    default:
      throw Refusal{cuda::Result::not_supported,
                    fmt::format("attribute {} of a pointer is not emulated", attribute)};
  }
}

// What cuPointerGetAttributes answers for memory that CUDA does not know.
void read_attribute_or_nothing(void* value, int attribute, cuda::DevicePointer pointer) {
  if (find_host_block(pointer) || owner_of(pointer).memory != nullptr)
    return read_attribute(value, attribute, pointer);
  switch (attribute) {
    case pointer_ordinal:
      return give(value, -2);
    case pointer_memory_type:
    case pointer_is_managed:
    case pointer_synchronises:
    case pointer_is_mapped:
      return give(value, 0U);
    default:
      return give(value, std::uint64_t{0});
  }
}

}  // namespace

emulator::Task allocation_task(std::size_t bytes, cuda::DevicePointer& pointer) {
  const auto kept = kept_allocation(bytes);
  pointer = *kept;
  return {emulator::NodeKind::allocation, [kept] { change_graph_block(*kept, true); }, kept};
}

emulator::Task free_task(cuda::DevicePointer pointer) {
  return {emulator::NodeKind::free, [pointer] { change_graph_block(pointer, false); }, pointer};
}

}  // namespace gemmery::drop_in

namespace gemmery::driver {

using drop_in::answer;
using drop_in::answer_on_device;
using drop_in::require;
using drop_in::state;
using emulator::current_device;
using emulator::device_of;

extern "C" {

// --- memory of the device -----------------------------------------------------------------------

cuda::Result cuMemAlloc_v2(cuda::DevicePointer* pointer, std::size_t bytes) {
  return answer_on_device("cuMemAlloc", [&] {
    require(pointer) = emulator::allocate(drop_in::default_pool(current_device()), bytes);
  });
}

cuda::Result cuMemAllocPitch_v2(cuda::DevicePointer* pointer, std::size_t* pitch,
                                std::size_t width_bytes, std::size_t height, unsigned) {
  constexpr std::size_t row_alignment = 512;
  return answer_on_device("cuMemAllocPitch", [&] {
    require(pitch) = (width_bytes + row_alignment - 1) / row_alignment * row_alignment;
    require(pointer) = emulator::allocate(drop_in::default_pool(current_device()), *pitch * height);
  });
}

cuda::Result cuMemFree_v2(cuda::DevicePointer pointer) {
  return answer_on_device("cuMemFree", [&] { drop_in::free_device_memory(pointer); });
}

cuda::Result cuMemGetAddressRange_v2(cuda::DevicePointer* base, std::size_t* bytes,
                                     cuda::DevicePointer pointer) {
  return answer("cuMemGetAddressRange", [&] {
    const drop_in::PointerFacts facts = drop_in::facts_of(pointer);
    if (base != nullptr) *base = facts.begin;
    if (bytes != nullptr) *bytes = static_cast<std::size_t>(facts.bytes);
  });
}

// --- shared with the host -----------------------------------------------------------------------

cuda::Result cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  return answer_on_device("cuMemHostAlloc", [&] {
    require(pointer) = drop_in::allocate_shared(bytes, flags, false).host;
  });
}

cuda::Result cuMemAllocHost_v2(void** pointer, std::size_t bytes) {
  return cuMemHostAlloc(pointer, bytes, 0);
}

cuda::Result cuMemFreeHost(void* pointer) {
  return answer("cuMemFreeHost",
                [&] { drop_in::release_block(pointer, false, cuda::Result::invalid_value); });
}

cuda::Result cuMemHostGetDevicePointer_v2(cuda::DevicePointer* device, void* host, unsigned) {
  return answer("cuMemHostGetDevicePointer", [&] {
    const drop_in::HostBlock block = drop_in::require_block(host);
    require(device) = block.address + (drop_in::address_of(host) - drop_in::address_of(block.host));
  });
}

cuda::Result cuMemHostGetFlags(unsigned* flags, void* host) {
  return answer("cuMemHostGetFlags", [&] { require(flags) = drop_in::require_block(host).flags; });
}

cuda::Result cuMemHostRegister_v2(void* host, std::size_t bytes, unsigned flags) {
  return answer_on_device("cuMemHostRegister",
                          [&] { drop_in::register_block(host, bytes, flags); });
}

cuda::Result cuMemHostUnregister(void* host) {
  return answer("cuMemHostUnregister", [&] {
    drop_in::release_block(host, true, cuda::Result::host_memory_not_registered);
  });
}

cuda::Result cuMemAllocManaged(cuda::DevicePointer* pointer, std::size_t bytes, unsigned flags) {
  return answer_on_device("cuMemAllocManaged", [&] {
    require(pointer) = drop_in::allocate_shared(bytes, flags, true).address;
  });
}

// Managed memory is everywhere at once.
cuda::Result cuMemPrefetchAsync(cuda::DevicePointer pointer, std::size_t, cuda::DeviceOrdinal,
                                cuda::Stream) {
  return answer("cuMemPrefetchAsync", [&] { drop_in::facts_of(pointer); });
}

cuda::Result cuMemPrefetchAsync_v2(cuda::DevicePointer pointer, std::size_t, cuda::MemLocation,
                                   unsigned, cuda::Stream) {
  return answer("cuMemPrefetchAsync", [&] { drop_in::facts_of(pointer); });
}

cuda::Result cuMemAdvise(cuda::DevicePointer pointer, std::size_t, int, cuda::DeviceOrdinal) {
  return answer("cuMemAdvise", [&] { drop_in::facts_of(pointer); });
}

cuda::Result cuMemAdvise_v2(cuda::DevicePointer pointer, std::size_t, int, cuda::MemLocation) {
  return answer("cuMemAdvise", [&] { drop_in::facts_of(pointer); });
}

// --- pointers -----------------------------------------------------------------------------------

cuda::Result cuPointerGetAttribute(void* value, int attribute, cuda::DevicePointer pointer) {
  return answer("cuPointerGetAttribute",
                [&] { drop_in::read_attribute(value, attribute, pointer); });
}

cuda::Result cuPointerGetAttributes(unsigned count, int* attributes, void** values,
                                    cuda::DevicePointer pointer) {
  return answer("cuPointerGetAttributes", [&] {
    for (unsigned index = 0; index < count; ++index)
      drop_in::read_attribute_or_nothing(values[index], attributes[index], pointer);
  });
}

cuda::Result cuPointerSetAttribute(const void*, int, cuda::DevicePointer pointer) {
  return answer("cuPointerSetAttribute", [&] { drop_in::facts_of(pointer); });
}

// --- pools --------------------------------------------------------------------------------------

cuda::Result cuDeviceGetDefaultMemPool(cuda::MemoryPool* pool, cuda::DeviceOrdinal device) {
  return answer("cuDeviceGetDefaultMemPool",
                [&] { require(pool) = &drop_in::default_pool(device_of(device)); });
}

cuda::Result cuDeviceGetMemPool(cuda::MemoryPool* pool, cuda::DeviceOrdinal device) {
  return answer("cuDeviceGetMemPool",
                [&] { require(pool) = &drop_in::current_pool(device_of(device)); });
}

cuda::Result cuDeviceSetMemPool(cuda::DeviceOrdinal device, cuda::MemoryPool pool) {
  return answer("cuDeviceSetMemPool", [&] {
    const int ordinal = device_of(device).ordinal;
    require(pool);
    const std::lock_guard lock(state().mutex);
    state().current_pools[ordinal] = pool;
  });
}

cuda::Result cuMemPoolDestroy(cuda::MemoryPool pool) {
  return answer("cuMemPoolDestroy", [&] {
    require(pool);
    const std::lock_guard lock(state().mutex);
    std::erase_if(state().current_pools, [pool](const auto& each) { return each.second == pool; });
    if (pool->used == 0) delete pool;  // else blocks of it are still to be freed
  });
}

cuda::Result cuMemPoolSetAccess(cuda::MemoryPool pool, const cuda::MemAccess* access,
                                std::size_t count) {
  return answer("cuMemPoolSetAccess", [&] {
    emulator::EmulatedDevice& owner = *require(pool).device;
    for (std::size_t index = 0; index < count; ++index) {
      emulator::EmulatedDevice& device = device_of(access[index].location.id);
      if (&device != &owner && access[index].flags != 0) device.memory.add_peer(owner.memory);
    }
  });
}

cuda::Result cuMemPoolGetAccess(int* flags, cuda::MemoryPool pool, cuda::MemLocation* location) {
  constexpr int read_and_write = 3;
  return answer("cuMemPoolGetAccess", [&] {
    const bool is_own = require(pool).device == &device_of(require(location).id);
    require(flags) = is_own ? read_and_write : 0;
  });
}

cuda::Result cuMemAllocAsync(cuda::DevicePointer* pointer, std::size_t bytes, cuda::Stream stream) {
  return answer_on_device("cuMemAllocAsync", [&] {
    require(pointer) = drop_in::allocate_on(stream, drop_in::current_pool(current_device()), bytes);
  });
}

cuda::Result cuMemAllocFromPoolAsync(cuda::DevicePointer* pointer, std::size_t bytes,
                                     cuda::MemoryPool pool, cuda::Stream stream) {
  return answer_on_device("cuMemAllocFromPoolAsync", [&] {
    require(pointer) = drop_in::allocate_on(stream, require(pool), bytes);
  });
}

cuda::Result cuMemFreeAsync(cuda::DevicePointer pointer, cuda::Stream stream) {
  return answer_on_device("cuMemFreeAsync", [&] { drop_in::free_on(stream, pointer); });
}

}  // extern "C"
}  // namespace gemmery::driver
