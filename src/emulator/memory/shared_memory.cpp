// SPDX-License-Identifier: Apache-2.0
#include "emulator/memory/shared_memory.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <tuple>
#include <utility>

#include "emulator/check/fault_handler.hpp"
#include "emulator/memory/lane_bytes.hpp"

namespace gemmery::emulator {
namespace {

Fault out_of_bounds_fault(std::uint64_t offset, std::uint32_t bytes, std::uint32_t end, int lane) {
  std::string where;
  if (offset < shared_reserved_bytes) {
    where = fmt::format("the first {} bytes belong to the system: a null or uninitialised pointer",
                        shared_reserved_bytes);
  } else {
    where = fmt::format(
        "it ends {} bytes past the end; check the index, or the dynamic shared "
        "memory that the launch asks for",
        offset + bytes - end);
  }
  Fault fault(
      FaultKind::out_of_bounds,
      fmt::format("access of {} bytes at shared address {:#x}; the CTA's {} bytes lie from "
                  "{:#x} to {:#x}: {}",
                  bytes, offset, end - shared_reserved_bytes, shared_reserved_bytes, end, where));
  fault.place.lane = lane;
  return fault;
}

[[noreturn]] void throw_misaligned(std::uint64_t offset, std::uint32_t bytes,
                                   std::uint32_t alignment, int lane) {
  Fault fault(FaultKind::misaligned,
              fmt::format("access of {} bytes at shared address {:#x}: expected a multiple of {}; "
                          "align the data or use a narrower access",
                          bytes, offset, alignment));
  fault.place.lane = lane;
  throw fault;
}

// If a handler takes the conflict, the access is performed. `changes_nothing`: a write of the
// present contents.
[[gnu::noinline, gnu::cold]] void report_conflict(const Conflict& conflict, bool is_write, int lane,
                                                  bool changes_nothing = false) {
  ConflictFault fault(conflict, is_write, "shared memory", conflict.offset);
  fault.place.lane = lane;
  fault.is_by_the_letter = changes_nothing && conflict.is_race && conflict.other_was_write;
  take_or_throw(std::move(fault));
}

}  // namespace

SharedMemory::SharedMemory(std::uint32_t bytes, std::uint32_t begin)
    : bytes_(bytes),
      begin_(begin),
      bytes_at_(std::size_t{shared_reserved_bytes} + bytes),
      shadow_(std::uint64_t{shared_reserved_bytes} + bytes),
      publications_(std::make_unique<PublicationTable>()) {}

void SharedMemory::check_bounds(std::uint32_t offset, std::uint32_t bytes,
                                std::uint32_t alignment) const {
  if (offset < begin_ || std::uint64_t{offset} + bytes > end()) {
    throw out_of_bounds_fault(offset, bytes, end(), -1);
  }
  if (alignment != 0 && offset % alignment != 0) {
    throw_misaligned(offset, bytes, alignment, -1);
  }
}

const std::byte* SharedMemory::read(std::uint32_t offset, std::uint32_t bytes,
                                    std::uint32_t alignment, const Accessor& who,
                                    bool must_be_written) {
  check_bounds(offset, bytes, alignment);
  Conflict conflict;
  if (shadow_.read(offset, bytes, who, conflict)) {
    report_conflict(conflict, false, who.lane);
    shadow_.forget_accesses(offset, bytes);
    std::ignore = shadow_.read(offset, bytes, who, conflict);
  }
  if (must_be_written && !shadow_.is_written(offset, bytes)) {
    std::uint32_t first = offset;
    while (first < offset + bytes && shadow_.is_written(first, 1)) ++first;
    Fault fault(FaultKind::unwritten_read,
                fmt::format("read of {} bytes at shared address {:#x}, where nobody has written "
                            "byte {:#x}; fill the tile, or wait for the copy that does",
                            bytes, offset, first));
    fault.place.lane = who.lane;
    take_or_throw(std::move(fault));
  }
  return data(offset);
}

void SharedMemory::note_write(std::uint32_t offset, std::uint32_t bytes, const Accessor& who) {
  Conflict conflict;
  if (!shadow_.write(offset, bytes, who, conflict)) return;
  report_conflict(conflict, true, who.lane);
  shadow_.forget_accesses(offset, bytes);
  std::ignore = shadow_.write(offset, bytes, who, conflict);
}

std::byte* SharedMemory::write(std::uint32_t offset, std::uint32_t bytes, std::uint32_t alignment,
                               const Accessor& who) {
  check_bounds(offset, bytes, alignment);
  note_write(offset, bytes, who);
  shadow_.mark_written(offset, bytes);
  return data(offset);
}

namespace {

// Checks bounds and alignment of all lanes; returns the lanes without those out of bounds whose
// fault a handler took.
LaneBytes checked_lanes(const LaneAccess& access, std::uint32_t begin, std::uint32_t end) {
  LaneBytes lanes{.active = access.active,
                  .addresses = access.addresses,
                  .begin = 0,
                  .bytes = access.bytes,
                  .is_row = forms_row(access)};
  const std::uint64_t first = access.addresses[0];
  const bool is_row_inside = lanes.is_row && first >= begin && first < end &&
                             first + std::uint64_t{32} * access.bytes <= end;
  if (!is_row_inside) {
    const std::uint64_t room = std::uint64_t{end} - begin;
    const std::uint32_t inside = room < access.bytes ? 0
                                                     : lanes_within(access.active, access.addresses,
                                                                    begin, room - access.bytes);
    if (inside != access.active) {
      const int lane = std::countr_zero(access.active & ~inside);
      take_or_throw(out_of_bounds_fault(access.addresses[lane], access.bytes, end, lane));
      lanes.active = inside;
      lanes.is_row = false;
    }
  }
  const int misaligned = find_misaligned_lane(access);
  if (misaligned >= 0) {
    throw_misaligned(access.addresses[misaligned], access.bytes, access.bytes, misaligned);
  }
  return lanes;
}

}  // namespace

std::uint32_t SharedMemory::load(const LaneAccess& access, Accessor who, void* to,
                                 std::uint32_t stride, std::uint32_t* written) {
  const LaneBytes lanes = checked_lanes(access, begin_, end());
  Conflict conflict;
  int lane = -1;
  if (note_reads(shadow_, lanes, who, conflict, lane)) {
    report_conflict(conflict, false, lane);
    forget_lanes(shadow_, lanes);
    std::ignore = note_reads(shadow_, lanes, who, conflict, lane);
  }
  clear_lanes(access.active & ~lanes.active, access.bytes, to, stride, written);
  gather(lanes, bytes_at_.data(), static_cast<std::byte*>(to), stride);
  std::array<std::uint32_t, 32> none;
  return find_written(shadow_, lanes, written != nullptr ? written : none.data());
}

void SharedMemory::store(const LaneAccess& access, Accessor who, const void* from,
                         std::uint32_t stride, std::uint32_t defined,
                         const std::uint32_t* written) {
  const LaneBytes lanes = checked_lanes(access, begin_, end());
  const auto* const values = static_cast<const std::byte*>(from);
  Conflict conflict;
  int lane = -1;
  if (note_writes(shadow_, lanes, values, stride, who, conflict, lane)) {
    report_conflict(conflict, true, lane, holds(lanes, bytes_at_.data(), values, stride));
    forget_lanes(shadow_, lanes);
    std::ignore = note_writes(shadow_, lanes, values, stride, who, conflict, lane);
  }
  scatter(lanes, bytes_at_.data(), values, stride);
  mark_stored(shadow_, lanes, defined, written);
}

bool SharedMemory::update(std::uint32_t offset, std::uint32_t bytes, Accessor who, LaneUpdate apply,
                          const void* operand, void* old, UpdateDefinedness defined) {
  check_bounds(offset, bytes, bytes);
  who.is_atomic = true;
  note_write(offset, bytes, who);
  const bool was_written = shadow_.is_written(offset, bytes);
  std::byte* const value = data(offset);
  if (old != nullptr) std::memcpy(old, value, bytes);
  alignas(16) std::array<std::byte, 32> changed;
  std::memcpy(changed.data(), value, bytes);
  apply(changed.data(), operand);
  std::memcpy(value, changed.data(), bytes);
  if (defined.is_operand_defined && (was_written || defined.replaces)) {
    shadow_.mark_written(offset, bytes);
  } else {
    shadow_.mark_unwritten(offset, bytes);
  }
  return was_written;
}

}  // namespace gemmery::emulator
