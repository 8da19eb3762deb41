// SPDX-License-Identifier: Apache-2.0
#include "drop_in/driver/state.hpp"

#include <gemmery/device.hpp>

#include "emulator/memory/address.hpp"

namespace gemmery::drop_in {

// Never destroyed: programs call the library until they end.
State& state() {
  static auto* const made = new State;
  return *made;
}

cuda::MemoryPoolHandle& default_pool(EmulatedDevice& device) {
  const std::lock_guard lock(state().mutex);
  cuda::MemoryPoolHandle*& pool = state().default_pools[device.ordinal];
  if (pool == nullptr) pool = new cuda::MemoryPoolHandle{.device = &device};
  return *pool;
}

cuda::MemoryPoolHandle& current_pool(EmulatedDevice& device) {
  {
    const std::lock_guard lock(state().mutex);
    const auto found = state().current_pools.find(device.ordinal);
    if (found != state().current_pools.end()) return *found->second;
  }
  return default_pool(device);
}

std::optional<HostBlock> find_host_block(std::uint64_t address) {
  const std::lock_guard lock(state().mutex);
  const auto contains = [address](std::uint64_t begin, std::size_t bytes) {
    return address >= begin && address - begin < bytes;
  };
  for (const auto& [begin, block] : state().host_blocks) {
    if (contains(begin, block.bytes) ||
        contains(reinterpret_cast<std::uintptr_t>(block.host), block.bytes))
      return block;
  }
  return std::nullopt;
}

std::string Owner::name() const {
  return device == nullptr ? "the host" : to_string(device->device);
}

Owner owner_of(std::uint64_t address) {
  if (emulator::host_range.contains(address)) return {&emulator::host_memory(), nullptr};
  for (int ordinal = 0; ordinal < emulator::device_count(); ++ordinal) {
    if (!emulator::global_range(ordinal + 1).contains(address)) continue;
    EmulatedDevice& device = emulator::device_at(ordinal);
    return {&device.memory, &device};
  }
  return {};
}

}  // namespace gemmery::drop_in
