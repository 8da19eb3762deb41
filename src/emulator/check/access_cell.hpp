// SPDX-License-Identifier: Apache-2.0
// The accesses that a shadow records for four bytes (a cell), packed: the last write, and the reads
// since.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/check/shadow.hpp"

namespace gemmery::emulator {

inline constexpr std::uint32_t bytes_per_cell = 4;
inline constexpr std::uint32_t whole_cell = 0xf;  // mask of a cell's bytes

// One access to some bytes of a cell.
class Access {
 public:
  constexpr Access() = default;
  Access(const Accessor& who, std::uint32_t mask, bool is_write) noexcept
      : epoch_(who.epoch.bits()),
        what_(std::uint64_t{who.pc} | std::uint64_t{who.operation} << 32 |
              std::uint64_t{who.lane} << 48 | std::uint64_t{mask} << mask_shift |
              (who.proxy == Proxy::generic ? 0 : async_bit) | (who.is_atomic ? atomic_bit : 0) |
              (is_write ? write_bit : 0)) {}
  // Represents a set of accesses, by its index in AccessSets.
  static Access of_set(std::uint32_t index) noexcept {
    Access access;
    access.epoch_ = ~std::uint64_t{0};
    access.what_ = index | set_bit;
    return access;
  }

  bool is_none() const noexcept { return epoch_ == 0; }
  bool is_set() const noexcept { return (what_ & set_bit) != 0; }
  bool is_write() const noexcept { return (what_ & write_bit) != 0; }
  bool is_atomic() const noexcept { return (what_ & atomic_bit) != 0; }
  bool is_async() const noexcept { return (what_ & async_bit) != 0; }
  std::uint32_t set_index() const noexcept { return static_cast<std::uint32_t>(what_); }
  std::uint32_t pc() const noexcept { return static_cast<std::uint32_t>(what_); }
  // For one cell, equal codes mean the same lane; see in_row.
  std::uint8_t lane_code() const noexcept { return static_cast<std::uint8_t>(what_ >> 48); }
  // The lane that accessed this cell, or several_lanes.
  std::uint8_t lane_at(std::uint64_t cell) const noexcept {
    const std::uint32_t code = lane_code(), kind = code >> 5;
    if (kind == 0 || code == several_lanes) return lane_code();
    return static_cast<std::uint8_t>((code + (cell >> (kind - 1))) & 31);
  }
  std::uint32_t mask() const noexcept {
    return static_cast<std::uint32_t>(what_ >> mask_shift) & whole_cell;
  }
  std::uint64_t epoch_bits() const noexcept { return epoch_; }
  Epoch epoch() const noexcept { return Epoch::from_bits(epoch_); }
  bool has_agent_of(const Access& other) const noexcept {
    return epoch_ >> Epoch::clock_bits == other.epoch_ >> Epoch::clock_bits;
  }
  // True for the same operation in the same epoch, by any lane.
  bool is_same_operation(const Access& other) const noexcept {
    return epoch_ == other.epoch_ && ((what_ ^ other.what_) & operation_bits) == 0;
  }
  bool has_lane_kind_of(const Access& other) const noexcept {
    return lane_code() >> 5 == other.lane_code() >> 5;
  }
  // True if this access also represents `other`, an access of the same kind: checks against either
  // give the same result.
  bool speaks_for(const Access& other) const noexcept {
    return is_same_kind(other) &&
           (lane_code() == other.lane_code() || lane_code() == several_lanes);
  }
  // True if they differ at most in the lane and the pc.
  bool is_same_kind(const Access& other) const noexcept {
    return epoch_ == other.epoch_ && ((what_ ^ other.what_) & kind_bits) == 0;
  }

  Access with_mask(std::uint32_t mask) const noexcept {
    Access changed = *this;
    changed.what_ = (what_ & ~(std::uint64_t{whole_cell} << mask_shift)) | std::uint64_t{mask}
                                                                               << mask_shift;
    return changed;
  }
  Access by_lane(std::uint8_t lane) const noexcept {
    Access changed = *this;
    changed.what_ = (what_ & ~(std::uint64_t{0xff} << 48)) | std::uint64_t{lane} << 48;
    return changed;
  }
  // The access of a lane whose bytes are 1 << `shift` cells. The lane is encoded relative to the
  // cell, so that all cells of lanes with adjacent bytes hold the same value and are checked
  // together.
  Access in_row(std::uint32_t lane, std::uint64_t cell, std::uint32_t shift) const noexcept {
    const auto distance = static_cast<std::uint32_t>(lane - (cell >> shift)) & 31;
    return by_lane(static_cast<std::uint8_t>((shift + 1) << 5 | distance));
  }
  Access by_several_lanes() const noexcept {
    Access changed = *this;
    changed.what_ |= std::uint64_t{several_lanes} << 48;
    return changed;
  }
  friend bool operator==(const Access&, const Access&) = default;

 private:
  static constexpr int mask_shift = 56;
  static constexpr std::uint64_t async_bit = std::uint64_t{1} << 60;
  static constexpr std::uint64_t atomic_bit = std::uint64_t{1} << 61;
  static constexpr std::uint64_t write_bit = std::uint64_t{1} << 62;
  static constexpr std::uint64_t set_bit = std::uint64_t{1} << 63;
  // operation, proxy
  static constexpr std::uint64_t operation_bits = std::uint64_t{0xffff} << 32 | async_bit;
  // operation, bytes, flags
  static constexpr std::uint64_t kind_bits = std::uint64_t{0xff00'ffff} << 32;

  std::uint64_t epoch_ = 0;
  std::uint64_t what_ = 0;
};

struct Cell {
  Access write;   // the last write
  Access others;  // the read since, or a set: several reads, and writes that `write` did not cover
  friend bool operator==(const Cell&, const Cell&) = default;
};

// Sets of accesses, shared by cells in the same state. A set is immutable; a change makes a new
// one.
class AccessSets {
 public:
  std::vector<Access>& entries(std::uint32_t index) noexcept { return sets_[index].entries; }
  std::uint32_t make();  // an empty set with one reference
  bool is_shared(std::uint32_t index) const noexcept { return sets_[index].holders > 1; }
  void hold(const Access& others, std::uint32_t count = 1) noexcept {
    if (others.is_set()) sets_[others.set_index()].holders += count;
  }
  void drop(const Access& others, std::uint32_t count = 1);
  void clear() noexcept;

 private:
  struct Set {
    std::uint32_t holders = 0;
    std::vector<Access> entries;
  };
  std::vector<Set> sets_;
  std::vector<std::uint32_t> free_;
  std::uint32_t used_ = 0;
};

inline std::uint32_t AccessSets::make() {
  std::uint32_t index = used_;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else if (++used_ > sets_.size()) {
    sets_.emplace_back();
  }
  sets_[index].holders = 1;
  sets_[index].entries.clear();
  return index;
}

inline void AccessSets::drop(const Access& others, std::uint32_t count) {
  if (!others.is_set()) return;
  if ((sets_[others.set_index()].holders -= count) == 0) free_.push_back(others.set_index());
}

inline void AccessSets::clear() noexcept {
  free_.clear();
  used_ = 0;
}

}  // namespace gemmery::emulator
