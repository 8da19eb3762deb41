// SPDX-License-Identifier: Apache-2.0
// The mbarrier object: phases, counts and bytes (PTX ISA, "Parallel Synchronization and
// Communication Instructions: mbarrier").
#include "emulator/instruction/synchronisation/mbarrier_object.hpp"

#include <cstring>

#include "emulator/instruction/copy/copy_operands.hpp"

namespace gemmery::emulator {
namespace {

[[noreturn]] void misuse(const std::string& message) {
  throw Fault(FaultKind::mbarrier_misuse, message);
}

std::uint64_t bytes_at(Cta& cta, std::uint32_t offset) noexcept {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, cta.shared.data(offset), sizeof bytes);
  return bytes;
}

// A mark that differs between objects and that data does not hold by chance.
std::uint64_t mark_of(const Cta& cta, std::uint32_t offset, AgentIndex agent) noexcept {
  const std::uint64_t what =
      std::uint64_t{offset} << 32 | std::uint64_t{cta.rank} << 16 | agent | 1u << 30;
  return (what ^ 0x6d62'6172'7269'6572) * 0x9e37'79b9'7f4a'7c15;
}

void add_bytes(const MbarrierPlace& place, std::int64_t bytes) {
  Mbarrier& barrier = place.barrier;
  barrier.pending_bytes += bytes;
  constexpr std::int64_t most = mbarrier_most;
  if (barrier.pending_bytes >= -most && barrier.pending_bytes <= most) return;
  misuse(name_of(place.cta, place.offset) + ": the bytes that are expected beyond what came are " +
         std::to_string(barrier.pending_bytes) +
         ", outside of -(2^20-1) to 2^20-1; expect fewer "
         "bytes per phase, and each byte once");
}

}  // namespace

std::string name_of(const Cta& cta, std::uint32_t offset) {
  return "mbarrier at shared " + hexadecimal(offset) + " of CTA " + std::to_string(cta.rank);
}

std::string describe_progress(const Mbarrier& barrier) {
  std::string text = "phase " + std::to_string(barrier.phase) + " (parity " +
                     std::to_string(barrier.phase & 1) + ") lacks " +
                     std::to_string(barrier.pending) + " of " + std::to_string(barrier.count) +
                     " arrivals";
  if (barrier.pending_bytes > 0) {
    text +=
        ", and " + std::to_string(barrier.pending_bytes) + " bytes are expected beyond what came";
  } else if (barrier.pending_bytes < 0) {
    text += ", and " + std::to_string(-barrier.pending_bytes) + " bytes came that nobody expected";
  }
  return text;
}

Mbarrier& live_mbarrier(Cta& cta, std::uint32_t offset, const char* doing) {
  const auto found = cta.mbarriers.find(offset);
  if (found == cta.mbarriers.end()) {
    if (offset % mbarrier_bytes != 0) {
      throw Fault(FaultKind::misaligned, std::string(doing) + ": the address " +
                                             hexadecimal(offset) +
                                             " of an mbarrier must be a multiple of 8");
    }
    misuse(std::string(doing) + ": there is no " + name_of(cta, offset) +
           "; mbarrier.init it, and order that before its use by a barrier");
  }
  if (bytes_at(cta, offset) != found->second.mark) {
    misuse(
        std::string(doing) + ": the " + name_of(cta, offset) +
        " was invalidated or overwritten with data; keep its 8 bytes apart while it is used, and "
        "mbarrier.init it anew afterwards");
  }
  return found->second;
}

void initialise_mbarrier(Warp& warp, std::uint32_t offset, std::uint64_t count,
                         const Accessor& who) {
  Cta& cta = warp.cta;
  if (count == 0 || count > mbarrier_most) {
    misuse("mbarrier.init with a count of " + std::to_string(count) +
           "; expected 1 to 2^20-1 arrivals per phase");
  }
  std::byte* const at = cta.shared.write(offset, mbarrier_bytes, mbarrier_bytes, who);
  const auto [entry, is_new] = cta.mbarriers.try_emplace(offset);
  Mbarrier& barrier = entry->second;
  if (!is_new && bytes_at(cta, offset) == barrier.mark) {
    misuse("mbarrier.init of a live " + name_of(cta, offset) +
           "; mbarrier.inval it first, or go on with its phases");
  }
  const AgentIndex agent = is_new ? warp.cta.cluster.add_agent() : barrier.agent;
  // An agent's clock never goes back: it continues after the phases of the object that was here
  // before.
  const std::uint32_t past_phases = is_new ? 0 : (barrier.phase + 2) & ~1u;
  barrier = {};
  barrier.agent = agent;
  barrier.count = barrier.pending = static_cast<std::uint32_t>(count);
  barrier.phase = past_phases;
  barrier.init_pc = who.pc;
  barrier.initialised = who.epoch;
  barrier.mark = mark_of(cta, offset, agent);
  std::memcpy(at, &barrier.mark, sizeof barrier.mark);
}

void invalidate_mbarrier(Cta& cta, std::uint32_t offset) {
  const Mbarrier& barrier = live_mbarrier(cta, offset, "mbarrier.inval");
  const std::uint64_t spoiled = ~barrier.mark;
  std::memcpy(cta.shared.data(offset), &spoiled, sizeof spoiled);
  cta.shared.shadow().mark_unwritten(offset, mbarrier_bytes);
}

void expect_bytes(const MbarrierPlace& place, std::int64_t bytes) { add_bytes(place, bytes); }

void finish_phase_if_complete(Mbarrier& barrier) {
  if (barrier.pending != 0 || barrier.pending_bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.count;
  barrier.completed = barrier.gathering;
  barrier.completed.happened.raise(barrier.agent, barrier.phase);
}

void arrive(const MbarrierPlace& place, std::uint64_t count, bool drops, bool keeps_phase) {
  Mbarrier& barrier = place.barrier;
  if (count == 0 || count > mbarrier_most) {
    misuse("an arrival at the " + name_of(place.cta, place.offset) + " counts " +
           std::to_string(count) + " times; expected 1 to 2^20-1");
  }
  if (count > barrier.pending) {
    misuse(std::to_string(count) + " more arrival(s) at the " + name_of(place.cta, place.offset) +
           ", whose phase " + std::to_string(barrier.phase) + " waits for " +
           std::to_string(barrier.pending) + " of " + std::to_string(barrier.count) +
           "; let as many threads arrive per phase as mbarrier.init said, and each wait for the "
           "phase before it arrives at the next");
  }
  if (drops) barrier.count -= static_cast<std::uint32_t>(count);
  barrier.pending -= static_cast<std::uint32_t>(count);
  if (keeps_phase && barrier.pending == 0 && barrier.pending_bytes == 0) {
    misuse("an arrival with .noComplete completes the phase of the " +
           name_of(place.cta, place.offset) + "; leave .noComplete out for the last arrival");
  }
  finish_phase_if_complete(barrier);
}

std::uint64_t token_of(const Mbarrier& barrier) noexcept {
  return std::uint64_t{barrier.pending} << 32 | barrier.phase;
}

MbarrierToken read_token(std::uint64_t bits) noexcept {
  return {.phase = static_cast<std::uint32_t>(bits),
          .pending = static_cast<std::uint32_t>(bits >> 32)};
}

// --- by asynchronous copies ---------------------------------------------------------------------

void complete_bytes(Cluster&, Cta& cta, std::uint32_t offset, std::int64_t bytes) {
  Mbarrier& barrier = live_mbarrier(cta, offset, "an asynchronous copy completes");
  add_bytes({barrier, cta, offset}, -bytes);
  finish_phase_if_complete(barrier);
}

void add_pending_arrival(Cta& cta, std::uint32_t offset) {
  Mbarrier& barrier = live_mbarrier(cta, offset, "cp.async.mbarrier.arrive");
  if (barrier.pending == mbarrier_most) {
    misuse("cp.async.mbarrier.arrive: the " + name_of(cta, offset) +
           " already waits for 2^20-1 arrivals; use .noinc and count the arrivals in init");
  }
  ++barrier.pending;
}

void async_arrive(Cluster&, Cta& cta, std::uint32_t offset, const Knowledge& knowledge) {
  Mbarrier& barrier = live_mbarrier(cta, offset, "cp.async.mbarrier.arrive");
  barrier.gathering.join(knowledge);
  arrive({barrier, cta, offset}, 1, false, false);
}

}  // namespace gemmery::emulator
