// SPDX-License-Identifier: Apache-2.0
// Checks whether an access may follow the earlier ones of a cell, and determines which of these the
// cell keeps.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "emulator/check/access_cell.hpp"
#include "emulator/check/shadow.hpp"

namespace gemmery::emulator {

// The number of accesses that a cell keeps separately. Beyond it, accesses of agents of other
// clusters, which no barrier orders, replace each other: a write that is unordered with the
// replaced access is very likely unordered with one of the others, too.
inline constexpr std::size_t max_foreign_entries = 16;

// Checks one access, cell by cell.
class Judge {
 public:
  Judge(AccessSets& sets, const Accessor& who, Conflict& found) noexcept
      : sets_(sets), who_(who), found_(found) {}

  // Selects the cell to check next.
  void look_at(std::uint64_t cell) noexcept { cell_ = cell; }

  // Checks the access and records it in the cell. False if there is a conflict; the cell is then
  // unchanged.
  template <bool is_write>
  bool note(Cell& cell, const Access& mine) {
    if (!agrees(cell.write, mine)) return false;
    return is_write ? note_write(cell, mine) : note_read(cell, mine);
  }

  // Whether `mine` may follow `earlier`. At least one of the two is a write.
  bool agrees(const Access& earlier, const Access& mine) noexcept {
    const std::uint32_t both = earlier.mask() & mine.mask();
    if (both == 0) return true;
    const bool are_atomic = earlier.is_atomic() && mine.is_atomic();
    const bool is_race = !are_atomic && !is_ordered(earlier, mine);
    if (!is_race && is_visible(earlier)) return true;
    found_ = {.is_race = is_race,
              .other_was_write = earlier.is_write(),
              .other_was_atomic = earlier.is_atomic(),
              .other = earlier.epoch(),
              .other_pc = earlier.pc(),
              .other_lane = earlier.lane_at(cell_),
              .other_proxy = earlier.is_async() ? Proxy::async : Proxy::generic,
              .proxy = who_.proxy,
              .offset = static_cast<std::uint64_t>(std::countr_zero(both))};
    return false;
  }

  // Adds a read to the cell's other accesses, if it may follow the writes among them.
  bool note_read(Cell& cell, const Access& mine) {
    if (cell.others.is_set()) return read_beside_set(cell, mine);
    if (cell.others.is_none() || stands_for(mine, cell.others)) {
      cell.others = mine;
    } else if (!is_merged(cell.others, mine)) {
      add(cell, mine);
    }
    return true;
  }
  // Whether `mine`, a write, may follow all of the cell's other accesses.
  bool agrees_with_others(const Access& others, const Access& mine) noexcept {
    if (!others.is_set()) return agrees(others, mine);
    return std::ranges::all_of(sets_.entries(others.set_index()),
                               [&](const Access& earlier) { return agrees(earlier, mine); });
  }
  // Whether a result since the last call is valid for its cell only, because it compared lanes that
  // are encoded in different ways (Access::in_row).
  bool take_is_of_one_cell() noexcept { return std::exchange(is_of_one_cell_, false); }

 private:
  bool is_known(const Access& earlier) noexcept {
    if (earlier.epoch_bits() == last_known_) return true;
    if (!who_.known->happened.knows(earlier.epoch(), who_.cluster)) return false;
    last_known_ = earlier.epoch_bits();
    return true;
  }
  bool is_ordered(const Access& earlier, const Access& mine) noexcept {
    if (earlier.epoch_bits() == mine.epoch_bits()) return is_same_party(earlier, mine);
    return is_known(earlier);
  }
  // The same lane of the same operation, in the same epoch.
  bool is_same_party(const Access& earlier, const Access& mine) noexcept {
    return earlier.is_same_operation(mine) && is_same_lane(earlier, mine);
  }
  bool is_same_lane(const Access& earlier, const Access& mine) noexcept {
    if (earlier.lane_code() == several_lanes || mine.lane_code() == several_lanes) return false;
    if (earlier.has_lane_kind_of(mine)) return earlier.lane_code() == mine.lane_code();
    is_of_one_cell_ = true;
    return earlier.lane_at(cell_) == mine.lane_at(cell_);
  }
  bool is_visible(const Access& earlier) noexcept {
    if (!earlier.is_write() || earlier.is_async() || who_.proxy == Proxy::generic) return true;
    if (earlier.epoch_bits() == last_fenced_) return true;
    const bool is_map = who_.proxy == Proxy::tensor_map;
    const VectorClock& visible = is_map ? who_.known->map_acquired : who_.known->fenced;
    if (!visible.knows(earlier.epoch(), who_.cluster)) return false;
    last_fenced_ = earlier.epoch_bits();
    return true;
  }

  // The part of an earlier access that the cell must keep after `mine`, a write. An atomic write
  // does not conflict with other atomics, so it cannot replace accesses that these may conflict
  // with, nor atomics that are unordered with it.
  Access left_of(const Access& earlier, const Access& mine) noexcept {
    const bool stays = mine.is_atomic() && (!earlier.is_atomic() || !is_ordered(earlier, mine));
    return stays ? earlier : earlier.with_mask(earlier.mask() & ~mine.mask());
  }

  bool note_write(Cell& cell, const Access& mine) {
    if (mine.is_atomic() && cell.write.speaks_for(mine))
      return agrees_with_others(cell.others, mine);
    Access made = mine;
    const Access left = is_joined(cell.write, made) ? Access() : left_of(cell.write, mine);
    const bool keeps_write = !cell.write.is_none() && left.mask() != 0;
    if (cell.others.is_set()) return write_over_set(cell, made, keeps_write, left);
    if (!cell.others.is_none()) {
      if (!agrees(cell.others, mine)) return false;
      cell.others = is_joined(cell.others, made) ? Access() : left_of(cell.others, mine);
      if (cell.others.mask() == 0) cell.others = {};
    }
    if (keeps_write) add(cell, left);
    cell.write = made;
    return true;
  }

  // Atomics of a warp that differ only in lanes become one, of several lanes: a plain access that
  // is unordered with one lane's is unordered with another's, too.
  static bool is_joined(const Access& earlier, Access& mine) noexcept {
    if (!mine.is_atomic() || !earlier.is_same_kind(mine)) return false;
    if (earlier.lane_code() != mine.lane_code()) mine = mine.by_several_lanes();
    return true;
  }

  bool write_over_set(Cell& cell, Access& mine, bool keeps_write, const Access& left) {
    if (!agrees_with_others(cell.others, mine)) return false;
    unshare(cell);
    const Access alone = mine;
    std::vector<Access>& entries = sets_.entries(cell.others.set_index());
    std::erase_if(entries, [&](Access& earlier) {
      if (is_joined(earlier, mine)) return true;
      earlier = left_of(earlier, alone);
      return earlier.mask() == 0;
    });
    if (keeps_write) entries.push_back(left);
    if (entries.empty()) {
      sets_.drop(cell.others);
      cell.others = {};
    }
    cell.write = mine;
    return true;
  }

  // Whether `mine`, a read, replaces `earlier`.
  bool stands_for(const Access& mine, const Access& earlier) noexcept {
    if (earlier.is_write() || (earlier.mask() & ~mine.mask()) != 0) return false;
    if (mine.is_atomic() && !earlier.is_atomic()) return false;
    if (earlier.epoch_bits() == mine.epoch_bits()) return is_same_party(earlier, mine);
    return earlier.has_agent_of(mine) || is_known(earlier);
  }
  // Merges `mine` into `earlier` if they differ only in lanes or bytes.
  bool is_merged(Access& earlier, const Access& mine) noexcept {
    if (earlier.epoch_bits() != mine.epoch_bits() || earlier.is_write()) return false;
    if (earlier.is_atomic() != mine.is_atomic()) return false;
    if (is_same_party(earlier, mine)) {
      earlier = earlier.with_mask(earlier.mask() | mine.mask());
      return true;
    }
    if (!earlier.is_same_kind(mine)) return false;
    earlier = earlier.by_several_lanes();
    return true;
  }

  bool read_beside_set(Cell& cell, const Access& mine) {
    bool is_spoken_for = false;
    for (const Access& earlier : sets_.entries(cell.others.set_index())) {
      if (earlier.is_write() && !agrees(earlier, mine)) return false;
      is_spoken_for = is_spoken_for || earlier.speaks_for(mine);
    }
    if (is_spoken_for) return true;
    unshare(cell);
    std::vector<Access>& entries = sets_.entries(cell.others.set_index());
    for (Access& earlier : entries) {
      if (is_merged(earlier, mine)) return true;
    }
    std::erase_if(entries, [&](const Access& earlier) { return stands_for(mine, earlier); });
    append(entries, mine);
    return true;
  }

  void unshare(Cell& cell) {
    const std::uint32_t shared = cell.others.set_index();
    if (!sets_.is_shared(shared)) return;
    const std::uint32_t own = sets_.make();
    sets_.entries(own) = sets_.entries(shared);
    sets_.drop(cell.others);
    cell.others = Access::of_set(own);
  }

  void add(Cell& cell, const Access& access) {
    if (cell.others.is_none()) {
      if (!access.is_write()) {
        cell.others = access;
        return;
      }
    } else if (cell.others.is_set()) {
      unshare(cell);
      append(sets_.entries(cell.others.set_index()), access);
      return;
    }
    const std::uint32_t index = sets_.make();
    std::vector<Access>& entries = sets_.entries(index);
    if (!cell.others.is_none()) entries.push_back(cell.others);
    entries.push_back(access);
    cell.others = Access::of_set(index);
  }

  void append(std::vector<Access>& entries, const Access& access) {
    if (entries.size() >= max_foreign_entries) {
      const auto foreign = std::find_if(entries.begin(), entries.end(), [&](const Access& entry) {
        return entry.epoch().cluster() != who_.cluster && (!entry.is_write() || entry.is_atomic());
      });
      if (foreign != entries.end()) entries.erase(foreign);
    }
    entries.push_back(access);
  }

  AccessSets& sets_;
  const Accessor& who_;
  Conflict& found_;
  std::uint64_t cell_ = 0;
  bool is_of_one_cell_ = false;
  std::uint64_t last_known_ = 0;
  std::uint64_t last_fenced_ = 0;
};

}  // namespace gemmery::emulator
