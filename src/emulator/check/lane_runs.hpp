// SPDX-License-Identifier: Apache-2.0
// The accesses of a warp's lanes, combined if they are equivalent for the order of events.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "emulator/check/access_cell.hpp"
#include "emulator/check/shadow.hpp"

namespace gemmery::emulator {

// Removes from `lanes` those that have the same address as the first one; true if there are any.
inline bool skip_same_address(std::uint32_t& lanes, const std::uint64_t* addresses) noexcept {
  const std::uint64_t address = addresses[std::countr_zero(lanes)];
  std::uint32_t rest = lanes & (lanes - 1);
  if (rest == 0 || addresses[std::countr_zero(rest)] != address) return false;
  do {
    rest &= rest - 1;
  } while (rest != 0 && addresses[std::countr_zero(rest)] == address);
  lanes = rest | (lanes & -lanes);
  return true;
}

// The period with which the addresses of a whole warp repeat; 32 if they do not.
inline std::uint32_t find_period(const std::uint64_t* addresses) noexcept {
  std::uint32_t period = 32;
  while (period > 1 &&
         std::memcmp(addresses, addresses + period / 2, period / 2 * sizeof *addresses) == 0) {
    period /= 2;
  }
  return period;
}

// Runs of lanes with adjacent bytes, each of which can be checked as one access.
class LaneRuns {
 public:
  LaneRuns(std::uint32_t lanes, const std::uint64_t* addresses, std::uint64_t begin,
           std::uint32_t bytes, const Access& whole) noexcept
      : lanes_(lanes), addresses_(addresses), begin_(begin), bytes_(bytes), whole_(whole) {
    shift_ = static_cast<std::uint32_t>(std::countr_zero(bytes / bytes_per_cell));
    if (whole.is_write() || lanes != all_lanes) return;
    const std::uint32_t period = find_period(addresses);
    if (period == 32) return;
    lanes_ = (std::uint32_t{1} << period) - 1;
    is_periodic_ = true;
  }

  bool next() noexcept {
    if (lanes_ == 0) return false;
    std::uint64_t address = 0;
    mine = take_lane(address);
    first_cell = address / bytes_per_cell;
    std::uint64_t end = address + bytes_;
    while (lanes_ != 0 && addresses_[std::countr_zero(lanes_)] - begin_ == end) {
      const std::uint32_t before = lanes_;
      if (take_lane(address) != mine) {
        lanes_ = before;
        break;
      }
      end += bytes_;
    }
    end_cell = end / bytes_per_cell;
    return true;
  }

  std::uint64_t first_cell = 0, end_cell = 0;
  Access mine;

 private:
  Access take_lane(std::uint64_t& offset) noexcept {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes_));
    offset = addresses_[lane] - begin_;
    const bool are_several =
        is_periodic_ || (!whole_.is_write() && skip_same_address(lanes_, addresses_));
    lanes_ &= lanes_ - 1;
    return are_several ? whole_.by_several_lanes()
                       : whole_.in_row(lane, offset / bytes_per_cell, shift_);
  }

  static constexpr std::uint32_t all_lanes = ~std::uint32_t{0};

  std::uint32_t lanes_;
  const std::uint64_t* addresses_;
  std::uint64_t begin_;
  std::uint32_t bytes_;
  std::uint32_t shift_ = 0;
  bool is_periodic_ = false;
  Access whole_;
};

// The first lane whose bytes include the byte at `address`.
inline int lane_of(std::uint32_t lanes, const std::uint64_t* addresses, std::uint32_t bytes,
                   std::uint64_t address) noexcept {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    if (address - addresses[lane] < bytes) return lane;
  }
  return 0;
}

}  // namespace gemmery::emulator
