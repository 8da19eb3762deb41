// SPDX-License-Identifier: Apache-2.0
// Accesses of kernels: checks them, records them in the shadow, performs them.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <tuple>
#include <utility>

#include "emulator/memory/global_memory_insides.hpp"

namespace gemmery::emulator {
namespace {

// If a handler takes the conflict, the access is performed. `changes_nothing`: a write of the
// present contents.
[[gnu::noinline, gnu::cold]] void report_conflict(const Conflict& conflict, bool is_write,
                                                  std::uint64_t begin, int lane,
                                                  bool changes_nothing = false) {
  ConflictFault fault(conflict, is_write, "global memory", begin + conflict.offset);
  fault.place.lane = lane;
  fault.is_by_the_letter = changes_nothing && conflict.is_race && conflict.other_was_write;
  take_or_throw(std::move(fault));
}

// Records an access again after its conflict was reported and the conflicting accesses were
// forgotten.
void note_again(Shadow& shadow, std::uint64_t offset, std::uint32_t bytes, const Accessor& who,
                bool is_write) {
  Conflict none;
  std::ignore =
      is_write ? shadow.write(offset, bytes, who, none) : shadow.read(offset, bytes, who, none);
}

void note_again(Shadow& shadow, const LaneBytes& lanes, Accessor who, bool is_write) {
  visit_lanes(lanes.active, [&](int lane) {
    who.lane = static_cast<std::uint8_t>(lane);
    note_again(shadow, lanes.offset(lane), lanes.bytes, who, is_write);
  });
}

void note_read(Shadow& shadow, std::uint64_t begin, std::uint64_t offset, std::uint32_t bytes,
               const Accessor& who) {
  Conflict conflict;
  if (!shadow.read(offset, bytes, who, conflict)) return;
  report_conflict(conflict, false, begin, who.lane);
  shadow.forget_accesses(offset, bytes);
  note_again(shadow, offset, bytes, who, false);
}

void note_write(Shadow& shadow, std::uint64_t begin, std::uint64_t offset, std::uint32_t bytes,
                const Accessor& who) {
  Conflict conflict;
  if (!shadow.write(offset, bytes, who, conflict)) return;
  report_conflict(conflict, true, begin, who.lane);
  shadow.forget_accesses(offset, bytes);
  note_again(shadow, offset, bytes, who, true);
}

[[noreturn]] void throw_misaligned(std::uint64_t address, std::uint32_t bytes, int lane) {
  Fault fault(FaultKind::misaligned,
              fmt::format("access of {} bytes at global address {:#x}: expected a multiple of {}; "
                          "use a narrower access or align the data",
                          bytes, address, bytes));
  fault.place.lane = lane;
  throw fault;
}

void require_alignment(const LaneAccess& access) {
  const int lane = find_misaligned_lane(access);
  if (lane >= 0) throw_misaligned(access.addresses[lane], access.bytes, lane);
}

// The lanes in `rest` whose bytes are in the chunk.
LaneBytes lanes_of_chunk(const LaneAccess& access, std::uint32_t rest, std::uint64_t begin,
                         std::uint64_t bytes) {
  LaneBytes lanes{.active = rest,
                  .addresses = access.addresses,
                  .begin = begin,
                  .bytes = access.bytes,
                  .is_row = rest == access.active && forms_row(access)};
  lanes.is_row = lanes.is_row && lanes.offset(0) + std::uint64_t{32} * access.bytes <= bytes;
  if (!lanes.is_row) {
    lanes.active = lanes_within(rest, access.addresses, begin, bytes - access.bytes);
  }
  return lanes;
}

}  // namespace

// --- behind atomics ------------------------------------------------------------------------------

bool GlobalMemory::Insides::note_cell_behind_updates(const View& view, std::uint64_t offset,
                                                     std::uint32_t bytes, const Accessor& who,
                                                     bool is_write, Conflict& found) {
  Shadow& shadow = view.chunk->shadow;
  // The knowledge of `who` and, for these bytes, the atomics that this access is ordered after.
  Knowledge known = *who.known;
  Accessor informed = who;
  informed.known = &known;
  Epoch last;
  const auto has_conflict = [&] {
    found = {};
    return is_write ? shadow.write(offset, bytes, informed, found)
                    : shadow.read(offset, bytes, informed, found);
  };
  while (has_conflict()) {
    if (found.other == last || !updates.is_followed(view.begin + found.offset, found, who)) {
      return false;
    }
    last = found.other;
    VectorClock of_other;
    of_other.raise(last.agent(), last.clock());
    known.happened.join_foreign(of_other, last.cluster(), who.cluster);
  }
  if (is_write) updates.forget(view.begin + offset, bytes);
  return true;
}

bool GlobalMemory::Insides::note_behind_updates(const View& view, std::uint64_t offset,
                                                std::uint32_t bytes, const Accessor& who,
                                                bool is_write, Conflict& found) {
  const std::uint32_t step = std::min<std::uint32_t>(bytes, 4);  // naturally aligned
  for (std::uint32_t at = 0; at < bytes; at += step) {
    if (!note_cell_behind_updates(view, offset + at, step, who, is_write, found)) return false;
  }
  return true;
}

// Throws if the accesses of `lanes`, at which recording stopped with `found`, are a conflict in
// spite of atomics. Accesses that were recorded before are recorded again, which has no effect.
void GlobalMemory::Insides::require_followed(const View& view, const LaneBytes& lanes, Accessor who,
                                             bool is_write, bool changes_nothing,
                                             const Conflict& found, int lane) {
  who.lane = static_cast<std::uint8_t>(lane);
  if (!updates.is_followed(view.begin + found.offset, found, who)) {
    report_conflict(found, is_write, view.begin, lane, changes_nothing);
    forget_lanes(view.chunk->shadow, lanes);
    return note_again(view.chunk->shadow, lanes, who, is_write);
  }
  visit_lanes(lanes.active, [&](int each) {
    Conflict conflict;
    who.lane = static_cast<std::uint8_t>(each);
    const std::uint64_t offset = lanes.offset(each);
    if (note_behind_updates(view, offset, lanes.bytes, who, is_write, conflict)) return;
    report_conflict(conflict, is_write, view.begin, each, changes_nothing);
    view.chunk->shadow.forget_accesses(offset, lanes.bytes);
    note_again(view.chunk->shadow, offset, lanes.bytes, who, is_write);
  });
}

void GlobalMemory::Insides::observe_updates(const LaneBytes& lanes, Accessor who) {
  visit_lanes(lanes.active, [&](int lane) {
    who.lane = static_cast<std::uint8_t>(lane);
    updates.observe(lanes.addresses[lane], lanes.bytes, who);
  });
}

// --- by lanes ------------------------------------------------------------------------------------

std::uint32_t GlobalMemory::load(const LaneAccess& access, Accessor who, void* to,
                                 std::uint32_t stride, std::uint32_t* written) {
  require_alignment(access);
  std::array<std::uint32_t, 32> none;
  std::uint32_t* const masks = written != nullptr ? written : none.data();
  std::uint32_t complete = 0;
  for (std::uint32_t rest = access.active; rest != 0;) {
    const int first = std::countr_zero(rest);
    const auto view = insides_->find_chunk_of_access(access.addresses[first], access.bytes, first);
    if (view.chunk == nullptr) {
      clear_lanes(1u << first, access.bytes, to, stride, written);
      rest &= rest - 1;
      continue;
    }
    const LaneBytes lanes = lanes_of_chunk(access, rest, view.begin, view.bytes);
    Conflict conflict;
    int lane = -1;
    if (note_reads(view.chunk->shadow, lanes, who, conflict, lane)) {
      insides_->require_followed(view, lanes, who, false, false, conflict, lane);
    }
    if (who.is_atomic) insides_->observe_updates(lanes, who);
    gather(lanes, view.data, static_cast<std::byte*>(to), stride);
    complete |=
        view.chunk->is_all_written ? lanes.active : find_written(view.chunk->shadow, lanes, masks);
    rest &= ~lanes.active;
  }
  return complete;
}

void GlobalMemory::store(const LaneAccess& access, Accessor who, const void* from,
                         std::uint32_t stride, std::uint32_t defined,
                         const std::uint32_t* written) {
  require_alignment(access);
  const auto* const values = static_cast<const std::byte*>(from);
  for (std::uint32_t rest = access.active; rest != 0;) {
    const int first = std::countr_zero(rest);
    const auto view = insides_->find_chunk_of_access(access.addresses[first], access.bytes, first);
    if (view.chunk == nullptr) {
      rest &= rest - 1;
      continue;
    }
    const LaneBytes lanes = lanes_of_chunk(access, rest, view.begin, view.bytes);
    Conflict conflict;
    int lane = -1;
    if (note_writes(view.chunk->shadow, lanes, values, stride, who, conflict, lane)) {
      LaneBytes noted = lanes;
      noted.active &= ~find_repeated_lanes(lanes, values, stride);
      insides_->require_followed(view, noted, who, true, holds(noted, view.data, values, stride),
                                 conflict, lane);
    }
    if (who.is_atomic) {
      visit_lanes(lanes.active,
                  [&](int each) { insides_->updates.forget(lanes.addresses[each], lanes.bytes); });
    }
    scatter(lanes, view.data, values, stride);
    if ((lanes.active & ~defined) != 0) view.chunk->is_all_written = false;
    if (!view.chunk->is_all_written) mark_stored(view.chunk->shadow, lanes, defined, written);
    rest &= ~lanes.active;
  }
}

// --- by bytes in a row ---------------------------------------------------------------------------

// Calls `visit(view, offset in the view, bytes, bytes before)` for each chunk of a range that a
// kernel accesses.
template <class Visit>
void GlobalMemory::Insides::for_each_accessed(std::uint64_t address, std::uint32_t bytes, int lane,
                                              Visit visit) {
  std::uint32_t done = 0;
  while (done < bytes) {
    const View view = chunk_of_access(address + done, 1, lane);
    const std::uint64_t offset = address + done - view.begin;
    const auto piece =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes - done, view.bytes - offset));
    visit(view, offset, piece, done);
    done += piece;
  }
}

void GlobalMemory::read_bytes(std::uint64_t address, std::uint32_t bytes, const Accessor& who,
                              void* to, std::uint64_t* written) {
  if (written != nullptr) *written = 0;
  insides_->for_each_accessed(
      address, bytes, who.lane,
      [&](const auto& view, std::uint64_t offset, std::uint32_t piece, std::uint32_t done) {
        note_read(view.chunk->shadow, view.begin, offset, piece, who);
        std::memcpy(static_cast<std::byte*>(to) + done, view.data + offset, piece);
        if (written != nullptr && bytes <= 64) {
          *written |= view.chunk->shadow.written_mask(offset, piece) << done;
        }
      });
}

void GlobalMemory::write_bytes(std::uint64_t address, std::uint32_t bytes, const Accessor& who,
                               const void* from) {
  insides_->for_each_accessed(
      address, bytes, who.lane,
      [&](const auto& view, std::uint64_t offset, std::uint32_t piece, std::uint32_t done) {
        note_write(view.chunk->shadow, view.begin, offset, piece, who);
        std::memcpy(view.data + offset, static_cast<const std::byte*>(from) + done, piece);
        view.chunk->shadow.mark_written(offset, piece);
      });
}

void GlobalMemory::discard(std::uint64_t address, std::uint32_t bytes, const Accessor& who) {
  if (address % bytes != 0) throw_misaligned(address, bytes, who.lane);
  insides_->for_each_accessed(
      address, bytes, who.lane,
      [&](const auto& view, std::uint64_t offset, std::uint32_t piece, std::uint32_t) {
        note_write(view.chunk->shadow, view.begin, offset, piece, who);
        view.chunk->mark_unwritten(offset, piece);
      });
}

bool GlobalMemory::update(std::uint64_t address, std::uint32_t bytes, Accessor who,
                          LaneUpdate apply, const void* operand, void* old,
                          UpdateDefinedness defined) {
  if (address % bytes != 0) throw_misaligned(address, bytes, who.lane);
  const auto view = insides_->find_chunk_of_access(address, bytes, who.lane);
  if (view.chunk == nullptr) {
    if (old != nullptr) std::memset(old, 0, bytes);
    return false;
  }
  const std::uint64_t offset = address - view.begin;
  who.is_atomic = true;
  note_write(view.chunk->shadow, view.begin, offset, bytes, who);
  insides_->updates.note(address, bytes, who);
  const bool was_written = view.chunk->shadow.is_written(offset, bytes);
  alignas(16) std::array<std::byte, 32> value;
  std::memcpy(value.data(), view.data + offset, bytes);
  if (old != nullptr) std::memcpy(old, value.data(), bytes);
  apply(value.data(), operand);
  std::memcpy(view.data + offset, value.data(), bytes);
  if (defined.is_operand_defined && (was_written || defined.replaces)) {
    view.chunk->shadow.mark_written(offset, bytes);
  } else {
    view.chunk->mark_unwritten(offset, bytes);
  }
  return was_written;
}

}  // namespace gemmery::emulator
