// SPDX-License-Identifier: Apache-2.0
// What all kinds of bulk copies share: the issuer, the place where bytes land, and the groups that
// the issuer waits for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "emulator/instruction/copy/copy_operands.hpp"
#include "emulator/instruction/memory/reduction.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

// The issuer of an asynchronous operation, and what it knew at that time.
struct Issuer {
  Warp* warp = nullptr;
  std::shared_ptr<const Knowledge> known;
  std::uint32_t pc = 0;
  std::uint8_t lane = 0;
  std::uint16_t number = 0;  // Accessor::operation

  // The accessor of the operation's reads and writes, which complete at `epoch`.
  Accessor accessor(Epoch epoch, Proxy proxy = Proxy::async) const noexcept;
  Cluster& cluster() const noexcept { return warp->cta.cluster; }
  void start(std::function<void(Cluster&)> complete) const;
};
Issuer issuer_of(Warp& warp, const Operation& operation, int lane);

// --- loads: signal an mbarrier ------------------------------------------------------------------

// Shared memory at the same offset in every CTA of a mask (one bit per rank): bytes go to `offset`,
// their count to the mbarrier at `barrier`.
struct Landing {
  std::uint32_t ranks = 0;
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
  std::uint32_t alignment = 16;
  std::uint32_t barrier = 0;
  bool is_atomic = false;  // a reduction
  Proxy proxy = Proxy::async;
};
// Checks bounds and alignment; throws Fault.
Landing landing_of(Warp& warp, int lane, std::uint64_t destination, std::uint64_t barrier,
                   std::uint32_t bytes, std::uint32_t alignment);
// Turns a landing into a multicast to the same offsets in each CTA of `mask`.
void multicast(Warp& warp, int lane, std::uint32_t mask, Landing& landing);
// The epoch of the reads: the completion of the current phase of the first CTA's mbarrier.
Epoch landing_epoch(Cluster& cluster, const Landing& landing);
// Writes the bytes to every CTA and counts them at its mbarrier. `unwritten` lists the offsets of
// bytes whose source was never written.
void land(const Issuer& issuer, const Landing& landing, const std::byte* from,
          std::span<const std::uint32_t> unwritten);

// The bytes that a reduction leaves at a landing of one CTA: those that are there, combined with
// `operands`. `who` reads them.
std::vector<std::byte> reduced(Cluster& cluster, const Landing& landing, Accessor who,
                               const Reduction& reduction, std::span<const std::byte> operands);

// Reads consecutive bytes of global memory. Appends the offsets (plus `place`) of bytes that were
// never written.
void read_global(Cluster& cluster, std::uint64_t address, std::uint32_t bytes, const Accessor& who,
                 std::byte* to, std::uint32_t place, std::vector<std::uint32_t>& unwritten);

// --- stores: belong to the bulk group of their thread -------------------------------------------

// Membership of one operation in the lane's open bulk group.
struct BulkMember {
  Epoch read_epoch, write_epoch;
  std::uint32_t group = 0;
};
BulkMember join_bulk_group(Warp& warp, int lane);

// A store that reads shared memory with a delay, and writes global memory with a further delay.
// `read` gathers the bytes, `write` stores them.
struct BulkStore {
  Issuer issuer;
  BulkMember member;
  std::function<void(const BulkStore&, std::vector<std::byte>&)> read;
  std::function<void(const BulkStore&, const std::vector<std::byte>&)> write;
};
void start_bulk_store(BulkStore store);

}  // namespace gemmery::emulator
