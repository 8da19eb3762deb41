// SPDX-License-Identifier: Apache-2.0
#include "emulator/instruction/image/local_memory.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace gemmery::emulator {
namespace {

void check(const char* memory, std::uint64_t address, std::uint32_t bytes, std::uint64_t end,
           int lane) {
  if (bytes <= end && address <= end - bytes && address % bytes == 0) return;
  const bool is_outside = bytes > end || address > end - bytes;
  Fault fault(is_outside ? FaultKind::out_of_bounds : FaultKind::misaligned,
              is_outside
                  ? fmt::format("access of {} bytes at {} address {:#x}, of which there are {} "
                                "bytes; check the index",
                                bytes, memory, address, end)
                  : fmt::format("access of {} bytes at {} address {:#x}: expected a multiple of {}",
                                bytes, memory, address, bytes));
  fault.place.lane = lane;
  throw fault;
}

std::size_t local_place(const Warp& warp, std::uint64_t address, int lane) {
  const std::uint64_t bytes = warp.cta.cluster.grid.image->local_bytes;
  return static_cast<std::size_t>(static_cast<std::uint64_t>(lane) * bytes + address);
}

// A mask with a bit for each byte of the access, set if the byte was written.
std::uint32_t written_bits(const Warp& warp, std::size_t place, std::uint32_t bytes) {
  std::uint32_t bits = 0;
  for (std::uint32_t byte = 0; byte < bytes; ++byte) {
    const std::size_t at = place + byte;
    bits |= static_cast<std::uint32_t>(warp.local_written[at / 64] >> (at % 64) & 1) << byte;
  }
  return bits;
}

void set_written_bits(Warp& warp, std::size_t place, std::uint32_t bytes, std::uint32_t bits) {
  for (std::uint32_t byte = 0; byte < bytes; ++byte) {
    const std::size_t at = place + byte;
    const std::uint64_t bit = std::uint64_t{1} << (at % 64);
    std::uint64_t& word = warp.local_written[at / 64];
    word = (bits >> byte & 1) != 0 ? word | bit : word & ~bit;
  }
}

constexpr std::uint32_t all_bytes(std::uint32_t bytes) noexcept {
  return static_cast<std::uint32_t>((std::uint64_t{1} << bytes) - 1);
}

}  // namespace

LaneMask load_local(Warp& warp, const LaneAccess& access, void* to, std::uint32_t stride,
                    std::uint32_t* written) {
  LaneMask complete = 0;
  for (LaneMask rest = access.active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t address = access.addresses[lane];
    check("local", address, access.bytes, warp.cta.cluster.grid.image->local_bytes, lane);
    const std::size_t place = local_place(warp, address, lane);
    std::memcpy(static_cast<std::byte*>(to) + static_cast<std::size_t>(lane) * stride,
                warp.local_memory.data() + place, access.bytes);
    written[lane] = written_bits(warp, place, access.bytes);
    complete |= static_cast<LaneMask>(written[lane] == all_bytes(access.bytes)) << lane;
  }
  return complete;
}

void store_local(Warp& warp, const LaneAccess& access, const void* from, std::uint32_t stride,
                 LaneMask defined, const std::uint32_t* written) {
  for (LaneMask rest = access.active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t address = access.addresses[lane];
    check("local", address, access.bytes, warp.cta.cluster.grid.image->local_bytes, lane);
    const std::size_t place = local_place(warp, address, lane);
    std::memcpy(warp.local_memory.data() + place,
                static_cast<const std::byte*>(from) + static_cast<std::size_t>(lane) * stride,
                access.bytes);
    const bool is_defined = (defined >> lane & 1) != 0;
    set_written_bits(warp, place, access.bytes,
                     is_defined ? all_bytes(access.bytes) : written[lane]);
  }
}

void load_parameters(Warp& warp, const LaneAccess& access, void* to, std::uint32_t stride) {
  const std::vector<std::byte>& parameters = warp.cta.cluster.grid.parameters;
  for (LaneMask rest = access.active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t address = access.addresses[lane];
    check("parameter", address, access.bytes, parameters.size(), lane);
    std::memcpy(static_cast<std::byte*>(to) + static_cast<std::size_t>(lane) * stride,
                parameters.data() + address, access.bytes);
  }
}

}  // namespace gemmery::emulator
