// SPDX-License-Identifier: Apache-2.0
// The message for a kernel's access outside of all allocations.
#include <fmt/format.h>

#include "emulator/memory/global_memory_insides.hpp"

namespace gemmery::emulator {
namespace {

// Allocations further away than this are not named in the message.
constexpr std::uint64_t nearest_bytes = std::uint64_t{1} << 30;

std::string describe_foreign_window(std::uint64_t address) {
  if (address < shared_reserved_bytes) return "a null pointer";
  if (address < (std::uint64_t{1} << 32)) {
    return "it looks like a shared or local address, which global accesses do not take";
  }
  if (address >= shared_window && address < local_window) return "a shared address used as global";
  if (address >= local_window && address < param_window) return "a local address used as global";
  if (address >= param_window && address < param_window_end) {
    return "an address of the kernel's parameters used as global";
  }
  return "no allocation is near; a host address is not one of the emulated device";
}

}  // namespace

std::string GlobalMemory::Insides::describe_neighbourhood(std::uint64_t address,
                                                          std::uint32_t bytes) const {
  const std::shared_lock lock(mutex);
  const auto dead = freed.upper_bound(address);
  if (dead != freed.begin()) {
    const auto& [start, size] = *std::prev(dead);
    if (address - start < size) {
      return fmt::format(
          "it lies in memory that was freed: {} bytes at {:#x}; keep the buffer until the kernel "
          "has run",
          size, start);
    }
  }
  const auto above = live.upper_bound(address);
  const auto below = above == live.begin() ? live.end() : std::prev(above);
  const std::uint64_t past = below == live.end()
                                 ? ~std::uint64_t{0}
                                 : address + bytes - (below->first + below->second->bytes);
  const std::uint64_t before = above == live.end() ? ~std::uint64_t{0} : above->first - address;
  if (std::min(past, before) > nearest_bytes) {
    if (address < global_window || address >= global_window_end)
      return describe_foreign_window(address);
    return live.empty() ? "nothing is allocated"
                        : "no allocation is within 1 GiB of it; check the index for an overflow, "
                          "and the pointer";
  }
  if (past <= before) {
    return fmt::format(
        "it ends {} bytes past the end of the {} bytes at {:#x}; check the index "
        "and the guard of the tail",
        past, below->second->bytes, below->first);
  }
  return fmt::format("it begins {} bytes before the {} bytes at {:#x}; check for a negative index",
                     before, above->second->bytes, above->first);
}

Fault GlobalMemory::Insides::out_of_bounds_fault(std::uint64_t address, std::uint32_t bytes,
                                                 int lane) const {
  Fault fault(FaultKind::out_of_bounds,
              fmt::format("access of {} bytes at global address {:#x} is not inside an allocation: "
                          "{}",
                          bytes, address, describe_neighbourhood(address, bytes)));
  fault.place.lane = lane;
  return fault;
}

}  // namespace gemmery::emulator
