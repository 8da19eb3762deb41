// SPDX-License-Identifier: Apache-2.0
// The heap of kernels: allocations like those of the host, within a limit of their own.
#include "emulator/memory/global_memory_insides.hpp"

namespace gemmery::emulator {

std::uint64_t GlobalMemory::allocate_from_heap(std::uint64_t bytes) {
  const std::lock_guard lock(insides_->heap_mutex);
  const std::uint64_t limit = insides_->heap_limit;
  if (bytes > limit || insides_->heap_used > limit - bytes) return 0;
  const std::uint64_t address = allocate(bytes);
  if (address == 0) return 0;
  insides_->heap.emplace(address, bytes);
  insides_->heap_used += bytes;
  return address;
}

bool GlobalMemory::free_to_heap(std::uint64_t address) {
  const std::lock_guard lock(insides_->heap_mutex);
  const auto found = insides_->heap.find(address);
  if (found == insides_->heap.end()) return false;
  insides_->heap_used -= found->second;
  insides_->heap.erase(found);
  return free(address);
}

void GlobalMemory::set_heap_bytes(std::uint64_t bytes) noexcept { insides_->heap_limit = bytes; }

}  // namespace gemmery::emulator
