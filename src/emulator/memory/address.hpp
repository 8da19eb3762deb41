// SPDX-License-Identifier: Apache-2.0
// The address space of an emulated device: windows far apart, none of which is a host address.
#pragma once

#include <cstdint>

namespace gemmery::emulator {

// Shared addresses are 32 bits, rank in its cluster << 24 | offset, as on hardware. The first
// kilobyte of each window belongs to the system, so that null pointers are detected.
inline constexpr std::uint32_t shared_rank_shift = 24;
inline constexpr std::uint32_t shared_offset_mask = (1u << shared_rank_shift) - 1;
inline constexpr std::uint32_t shared_reserved_bytes = 1024;
// %reserved_smem_offset_1: kernels that name it may use the kilobyte from this offset on
// (cooperative groups keep barriers of large tiles there).
inline constexpr std::uint32_t shared_runtime_offset = 256;
constexpr std::uint32_t shared_address(std::uint32_t cta_rank, std::uint32_t offset) noexcept {
  return cta_rank << shared_rank_shift | offset;
}

// Generic addresses: base + address in the space. Global addresses equal generic ones.
inline constexpr std::uint64_t shared_window = 0x0000'0060'0000'0000;
inline constexpr std::uint64_t local_window = 0x0000'0061'0000'0000;   // each thread its own
inline constexpr std::uint64_t window_bytes = std::uint64_t{1} << 32;  // of either
inline constexpr std::uint64_t param_window = 0x0000'0062'0000'0000;   // the launch's parameters
inline constexpr std::uint64_t param_window_end = 0x0000'0063'0000'0000;
// Addresses of functions: a module's identity, then 16 bytes for each of its functions.
inline constexpr std::uint64_t function_window = 0x0000'0100'0000'0000;
inline constexpr std::uint64_t global_window = 0x0000'2000'0000'0000;  // allocations, with gaps
inline constexpr std::uint64_t global_window_end = global_window + (std::uint64_t{1} << 45);

// Each memory allocates in a range of its own, so that an address says whose it is. The first one
// is that of memory which hosts access at the same addresses.
struct AddressRange {
  std::uint64_t begin = global_window;
  std::uint64_t end = global_window_end;
  bool contains(std::uint64_t address) const noexcept { return address >= begin && address < end; }
};
inline constexpr int global_range_count = 64;
constexpr AddressRange global_range(int index) noexcept {
  constexpr std::uint64_t bytes = (global_window_end - global_window) / global_range_count;
  const std::uint64_t begin = global_window + static_cast<std::uint64_t>(index) * bytes;
  return {begin, begin + bytes};
}
inline constexpr AddressRange host_range = global_range(0);

}  // namespace gemmery::emulator
