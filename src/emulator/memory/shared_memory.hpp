// SPDX-License-Identifier: Apache-2.0
// The shared memory of one CTA with its shadow. Used by one host thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/check/fault.hpp"
#include "emulator/check/publication.hpp"
#include "emulator/check/shadow.hpp"
#include "emulator/memory/address.hpp"
#include "emulator/memory/lane_access.hpp"

namespace gemmery::emulator {

class SharedMemory {
 public:
  // Offsets run from `begin` to shared_reserved_bytes + bytes.
  explicit SharedMemory(std::uint32_t bytes, std::uint32_t begin = shared_reserved_bytes);

  std::uint32_t end() const noexcept { return shared_reserved_bytes + bytes_; }

  // Throw Fault: out_of_bounds, misaligned (offset not a multiple of `alignment`).
  void check_bounds(std::uint32_t offset, std::uint32_t bytes, std::uint32_t alignment) const;

  // A warp's loads and stores, as in GlobalMemory; the addresses are offsets.
  std::uint32_t load(const LaneAccess& access, Accessor who, void* to, std::uint32_t stride,
                     std::uint32_t* written = nullptr);
  void store(const LaneAccess& access, Accessor who, const void* from, std::uint32_t stride,
             std::uint32_t defined, const std::uint32_t* written = nullptr);
  bool update(std::uint32_t offset, std::uint32_t bytes, Accessor who, LaneUpdate apply,
              const void* operand, void* old, UpdateDefinedness defined = {});
  PublicationTable& publications() noexcept { return *publications_; }

  // Checks bounds and order; throws Fault. `must_be_written`: hardware (wgmma, bulk stores)
  // consumes the bytes, so unwritten ones are a fault at once. Returns a pointer to the bytes.
  const std::byte* read(std::uint32_t offset, std::uint32_t bytes, std::uint32_t alignment,
                        const Accessor& who, bool must_be_written);
  // Records the write and returns a pointer to the bytes, which count as written from now on.
  std::byte* write(std::uint32_t offset, std::uint32_t bytes, std::uint32_t alignment,
                   const Accessor& who);

  // No checks: for callers that have made them. The shadow's offsets are the same.
  std::byte* data(std::uint32_t offset) noexcept { return bytes_at_.data() + offset; }
  Shadow& shadow() noexcept { return shadow_; }

 private:
  void note_write(std::uint32_t offset, std::uint32_t bytes, const Accessor& who);

  std::uint32_t bytes_;
  std::uint32_t begin_;
  std::vector<std::byte> bytes_at_;
  Shadow shadow_;
  std::unique_ptr<PublicationTable> publications_;  // by offset
};

}  // namespace gemmery::emulator
