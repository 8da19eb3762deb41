// SPDX-License-Identifier: Apache-2.0
// The shared memory of one CTA with its shadow. One host thread at a time touches it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/check/fault.hpp"
#include "emulator/check/shadow.hpp"
#include "emulator/memory/address.hpp"

namespace gemmery::emulator {

class SharedMemory {
 public:
  // Offsets run from shared_reserved_bytes to shared_reserved_bytes + bytes.
  explicit SharedMemory(std::uint32_t bytes);

  std::uint32_t end() const noexcept { return shared_reserved_bytes + bytes_; }

  // Throw Fault: out_of_bounds, misaligned (offset not a multiple of `alignment`).
  void check_bounds(std::uint32_t offset, std::uint32_t bytes, std::uint32_t alignment) const;

  // Bounds, order and bytes; throw Fault. `must_be_written`: hardware (wgmma, bulk stores) consumes
  // the bytes, so reading unwritten ones is a fault at once. Returns a pointer to the bytes.
  const std::byte* read(std::uint32_t offset, std::uint32_t bytes, std::uint32_t alignment,
                        const Accessor& who, bool must_be_written);
  // Notes the write and returns where the bytes go; they count as written from now on.
  std::byte* write(std::uint32_t offset, std::uint32_t bytes, std::uint32_t alignment,
                   const Accessor& who);

  // Without checks, for those that have made them.
  std::byte* data(std::uint32_t offset) noexcept { return bytes_at_.data() + offset; }
  Shadow& shadow() noexcept { return shadow_; }

 private:
  std::uint32_t bytes_;
  std::vector<std::byte> bytes_at_;
  Shadow shadow_;
};

}  // namespace gemmery::emulator
