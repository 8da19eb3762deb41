// SPDX-License-Identifier: Apache-2.0
// What bulk copies of every kind share: who issued one, where its bytes land, and the groups that
// its issuer waits for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "emulator/instruction/copy/copy_operands.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {

// Who issued an asynchronous operation, and what was known then.
struct Issuer {
  Warp* warp = nullptr;
  std::shared_ptr<const Knowledge> known;
  std::uint32_t pc = 0;
  std::uint8_t lane = 0;
  std::uint16_t number = 0;  // Accessor::operation

  // The operation's accesses, which will have happened at `epoch`.
  Accessor accessor(Epoch epoch, Proxy proxy = Proxy::async) const noexcept;
  Cluster& cluster() const noexcept { return warp->cta.cluster; }
  void start(std::function<void(Cluster&)> complete) const;
};
Issuer issuer_of(Warp& warp, const Operation& operation, int lane);

// --- loads: signal an mbarrier
// ---------------------------------------------------------------------

// The same place, relative to each CTA, in all CTAs of a mask (bit per rank): bytes go to `offset`,
// their count to the mbarrier at `barrier`.
struct Landing {
  std::uint32_t ranks = 0;
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
  std::uint32_t alignment = 16;
  std::uint32_t barrier = 0;
  bool is_atomic = false;  // a reduction
};
// Checks bounds and alignment; throws Fault.
Landing landing_of(Warp& warp, int lane, std::uint64_t destination, std::uint64_t barrier,
                   std::uint32_t bytes, std::uint32_t alignment);
// Turns it into a multicast: to the same place in each CTA of `mask`.
void multicast(Warp& warp, int lane, std::uint32_t mask, Landing& landing);
// When the first CTA's mbarrier completes the phase under way: the epoch of the reads.
Epoch landing_epoch(Cluster& cluster, const Landing& landing);
// Writes the bytes to every CTA and counts them there. `unwritten`: places among the bytes whose
// source nobody wrote.
void land(const Issuer& issuer, const Landing& landing, const std::byte* from,
          std::span<const std::uint32_t> unwritten);

// Bytes of global memory in a row, with places (plus `place`) that nobody wrote appended.
void read_global(Cluster& cluster, std::uint64_t address, std::uint32_t bytes, const Accessor& who,
                 std::byte* to, std::uint32_t place, std::vector<std::uint32_t>& unwritten);

// --- stores: belong to the bulk group of their thread
// -----------------------------------------------

// One operation of the group that its lane has open.
struct BulkMember {
  Epoch read_epoch, write_epoch;
  std::uint32_t group = 0;
};
BulkMember join_bulk_group(Warp& warp, int lane);

// Reads its source in shared memory late, writes global memory later still. `read` gets the bytes,
// `write` uses them.
struct BulkStore {
  Issuer issuer;
  BulkMember member;
  std::function<void(const BulkStore&, std::vector<std::byte>&)> read;
  std::function<void(const BulkStore&, const std::vector<std::byte>&)> write;
};
void start_bulk_store(BulkStore store);

}  // namespace gemmery::emulator
