// SPDX-License-Identifier: Apache-2.0
// Landings and bulk groups, which all kinds of bulk copies share.
#include "emulator/instruction/copy/async_copy.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "emulator/check/fault_handler.hpp"
#include "emulator/instruction/synchronisation/mbarrier.hpp"

namespace gemmery::emulator {
namespace {

constexpr const char* signals = "complete_tx of a bulk copy";

Fault early_exit_fault(const Cta& cta) {
  return {FaultKind::early_exit,
          "CTA " + std::to_string(cta.rank) +
              " of the cluster has left the kernel while a bulk copy with its shared memory "
              "is under way; wait for the copy (its mbarrier or bulk group) before the end"};
}

void require_alive(const Cta& cta) {
  if (cta.has_left) throw early_exit_fault(cta);
}

// No manual says that shared memory stays until the stores of its CTA have read it, and no run on a
// board has shown that it does not (tests/results/gpu-faults.md).
void note_store_after_exit(const Cta& cta) {
  if (!cta.has_left) return;
  Fault fault = early_exit_fault(cta);
  fault.is_by_the_letter = true;
  take_or_throw(std::move(fault));
}

BulkGroups::Group& group_of(BulkGroups& groups, std::uint32_t number) {
  return *std::find_if(groups.groups.begin(), groups.groups.end(),
                       [number](const auto& group) { return group.number == number; });
}

void drop_finished(BulkGroups& groups) {
  std::erase_if(groups.groups, [&](const BulkGroups::Group& group) {
    return group.number <= groups.committed && group.unfinished == 0;
  });
}

}  // namespace

Accessor Issuer::accessor(Epoch epoch, Proxy proxy) const noexcept {
  return {.epoch = epoch,
          .known = known.get(),
          .cluster = cluster().index,
          .pc = pc,
          .lane = lane,
          .proxy = proxy,
          .operation = number};
}

void Issuer::start(std::function<void(Cluster&)> complete) const {
  start_async(*warp, lane, pc, std::move(complete));
}

// Begins a new epoch, so that the operation does not count as ordered after anything the warp does
// from now on.
Issuer issuer_of(Warp& warp, const Operation& operation, int lane) {
  const auto known = std::make_shared<Knowledge>();
  warp.release(*known);
  return {.warp = &warp,
          .known = known,
          .pc = operation.pc,
          .lane = static_cast<std::uint8_t>(lane),
          .number = warp.cta.cluster.async.next_operation++};
}

// --- loads --------------------------------------------------------------------------------------

Landing landing_of(Warp& warp, int lane, std::uint64_t destination, std::uint64_t barrier,
                   std::uint32_t bytes, std::uint32_t alignment) {
  const Cluster::SharedPlace place = shared_place_of(warp, destination);
  const Cluster::SharedPlace signalled = shared_place_of(warp, barrier);
  if (place.cta != signalled.cta)
    throw_fault(FaultKind::mbarrier_misuse, lane,
                "the destination lies in CTA " + std::to_string(place.cta->rank) +
                    " and the mbarrier in CTA " + std::to_string(signalled.cta->rank) +
                    "; both must be of one CTA");
  place.cta->shared.check_bounds(place.offset, bytes, alignment);
  live_mbarrier(*signalled.cta, signalled.offset, signals);
  return {.ranks = 1u << place.cta->rank,
          .offset = place.offset,
          .bytes = bytes,
          .alignment = alignment,
          .barrier = signalled.offset};
}

void multicast(Warp& warp, int lane, std::uint32_t mask, Landing& landing) {
  Cluster& cluster = warp.cta.cluster;
  const std::uint32_t ranks = mask & 0xffff;
  if (ranks == 0 || ranks >> cluster.ctas.size() != 0)
    throw_fault(FaultKind::illegal_instruction, lane,
                "multicast to the CTA mask " + hexadecimal(ranks) + " in a cluster of " +
                    std::to_string(cluster.ctas.size()) +
                    "; expected at least one bit, and none beyond the cluster");
  landing.ranks = ranks;
}

Epoch landing_epoch(Cluster& cluster, const Landing& landing) {
  const auto rank = static_cast<std::uint32_t>(std::countr_zero(landing.ranks));
  return epoch_of_phase(cluster, live_mbarrier(cluster.cta(rank), landing.barrier, signals));
}

void land(const Issuer& issuer, const Landing& landing, const std::byte* from,
          std::span<const std::uint32_t> unwritten) {
  Cluster& cluster = issuer.cluster();
  for_each_lane(landing.ranks, [&](int rank) {
    Cta& cta = cluster.cta(static_cast<std::uint32_t>(rank));
    require_alive(cta);
    const Epoch epoch = epoch_of_phase(cluster, live_mbarrier(cta, landing.barrier, signals));
    Accessor who = issuer.accessor(epoch, landing.proxy);
    who.is_atomic = landing.is_atomic;
    std::byte* const to = cta.shared.write(landing.offset, landing.bytes, landing.alignment, who);
    std::memcpy(to, from, landing.bytes);
    for (const std::uint32_t place : unwritten)
      cta.shared.shadow().mark_unwritten(landing.offset + place, 1);
    complete_bytes(cluster, cta, landing.barrier, landing.bytes);
  });
}

std::vector<std::byte> reduced(Cluster& cluster, const Landing& landing, Accessor who,
                               const Reduction& reduction, std::span<const std::byte> operands) {
  constexpr std::uint32_t chunk_bytes = 16;
  const bool is_in_chunks = landing.bytes % chunk_bytes == 0;
  const LaneUpdate update = is_in_chunks ? reduction.chunk : reduction.element;
  const std::uint32_t step = is_in_chunks ? chunk_bytes : reduction.element_bytes;
  const auto rank = static_cast<std::uint32_t>(std::countr_zero(landing.ranks));
  who.is_atomic = true;
  const std::byte* const old =
      cluster.cta(rank).shared.read(landing.offset, landing.bytes, landing.alignment, who, true);
  std::vector<std::byte> values(old, old + landing.bytes);
  for (std::uint32_t at = 0; at < landing.bytes; at += step)
    update(values.data() + at, operands.data() + at);
  return values;
}

void read_global(Cluster& cluster, std::uint64_t address, std::uint32_t bytes, const Accessor& who,
                 std::byte* to, std::uint32_t place, std::vector<std::uint32_t>& unwritten) {
  constexpr std::uint32_t step = 64;  // bits of the mask
  for (std::uint32_t done = 0; done < bytes; done += step) {
    const std::uint32_t count = std::min(step, bytes - done);
    std::uint64_t written = 0;
    cluster.grid.memory->read_bytes(address + done, count, who, to + done, &written);
    std::uint64_t missing =
        ~written & (count == step ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1);
    for (; missing != 0; missing &= missing - 1)
      unwritten.push_back(place + done + static_cast<std::uint32_t>(std::countr_zero(missing)));
  }
}

// --- stores -------------------------------------------------------------------------------------

BulkMember join_bulk_group(Warp& warp, int lane) {
  Cluster& cluster = warp.cta.cluster;
  BulkGroups& groups = warp.bulk[static_cast<std::size_t>(lane)];
  if (groups.read_strand == no_agent) {
    groups.read_strand = cluster.add_agent();
    groups.write_strand = cluster.add_agent();
  }
  const std::uint32_t number = groups.committed + 1;
  if (groups.open++ == 0) groups.groups.push_back({number, 0, 0});
  ++groups.groups.back().unread;
  ++groups.groups.back().unfinished;
  return {.read_epoch = Epoch(cluster.index, groups.read_strand, number),
          .write_epoch = Epoch(cluster.index, groups.write_strand, number),
          .group = number};
}

void start_bulk_store(BulkStore store) {
  const auto shared_store = std::make_shared<const BulkStore>(std::move(store));
  shared_store->issuer.start([shared_store](Cluster&) {
    const BulkStore& self = *shared_store;
    const auto lane = std::size_t{self.issuer.lane};
    note_store_after_exit(self.issuer.warp->cta);
    const auto bytes = std::make_shared<std::vector<std::byte>>();
    self.read(self, *bytes);
    --group_of(self.issuer.warp->bulk[lane], self.member.group).unread;
    self.issuer.start([shared_store, bytes, lane](Cluster&) {
      const BulkStore& writer = *shared_store;
      writer.write(writer, *bytes);
      BulkGroups& groups = writer.issuer.warp->bulk[lane];
      --group_of(groups, writer.member.group).unfinished;
      drop_finished(groups);
    });
  });
}

}  // namespace gemmery::emulator
