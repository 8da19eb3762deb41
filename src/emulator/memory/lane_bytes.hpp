// SPDX-License-Identifier: Apache-2.0
// Copies the bytes of a warp's lanes in one contiguous part of memory, and records accesses in its
// shadow.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "emulator/check/shadow.hpp"
#include "emulator/memory/lane_access.hpp"

namespace gemmery::emulator {

// Lanes all of whose bytes are in the memory that begins at `begin`.
struct LaneBytes {
  std::uint32_t active = 0;
  const std::uint64_t* addresses = nullptr;
  std::uint64_t begin = 0;
  std::uint32_t bytes = 0;
  bool is_row = false;  // all 32 lanes with adjacent bytes: the usual case

  std::uint64_t offset(int lane) const noexcept { return addresses[lane] - begin; }
};

template <class Visit>
inline void visit_lanes(std::uint32_t mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(std::countr_zero(mask));
}

// Calls `visit` with the width as a constant, so that copies compile to single moves.
template <class Visit>
inline void with_width(std::uint32_t bytes, Visit visit) {
  switch (bytes) {
    case 1:
      return visit(std::integral_constant<std::size_t, 1>{});
    case 2:
      return visit(std::integral_constant<std::size_t, 2>{});
    case 4:
      return visit(std::integral_constant<std::size_t, 4>{});
    case 8:
      return visit(std::integral_constant<std::size_t, 8>{});
    case 16:
      return visit(std::integral_constant<std::size_t, 16>{});
    default:
      return visit(std::integral_constant<std::size_t, 32>{});
  }
}

// Whether all 32 lanes are active and their bytes are adjacent.
inline bool forms_row(const LaneAccess& access) noexcept {
  std::uint64_t differences = 0;
  for (std::uint64_t lane = 0; lane < 32; ++lane)
    differences |= (access.addresses[lane] - access.addresses[0]) ^ (lane * access.bytes);
  return access.active == ~std::uint32_t{0} && differences == 0;
}

// The first active lane whose address is not a multiple of its bytes; -1: none.
inline int find_misaligned_lane(const LaneAccess& access) noexcept {
  std::uint64_t bits = 0;
  for (int lane = 0; lane < 32; ++lane) bits |= access.addresses[lane];
  if ((bits & (access.bytes - 1)) == 0) return -1;
  for (int lane = 0; lane < 32; ++lane) {
    const bool is_active = (access.active >> lane & 1) != 0;
    if (is_active && (access.addresses[lane] & (access.bytes - 1)) != 0) return lane;
  }
  return -1;
}

// Lanes of `mask` that begin in [begin, begin + last]; `last` is below 2^63.
inline std::uint32_t lanes_within(std::uint32_t mask, const std::uint64_t* addresses,
                                  std::uint64_t begin, std::uint64_t last) noexcept {
  std::uint64_t beyond = 0;  // bit 63: some lane, active or not
  for (int lane = 0; lane < 32; ++lane) {
    const std::uint64_t offset = addresses[lane] - begin;
    beyond |= offset | (last - offset);
  }
  if (beyond >> 63 == 0) return mask;
  std::uint32_t inside = 0;
  for (int lane = 0; lane < 32; ++lane) {
    inside |= static_cast<std::uint32_t>(addresses[lane] - begin <= last) << lane;
  }
  return inside & mask;
}

struct ByteSpan {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// The range from the first byte of any lane to the last.
inline ByteSpan span_of(const LaneBytes& lanes) noexcept {
  if (lanes.is_row) return {lanes.offset(0), std::uint64_t{32} * lanes.bytes};
  std::uint64_t low = ~std::uint64_t{0};
  std::uint64_t high = 0;
  visit_lanes(lanes.active, [&](int lane) {
    const std::uint64_t offset = lanes.offset(lane);
    low = offset < low ? offset : low;
    high = offset > high ? offset : high;
  });
  return {low, high - low + lanes.bytes};
}

inline void gather(const LaneBytes& lanes, const std::byte* data, std::byte* to,
                   std::size_t stride) noexcept {
  if (lanes.is_row && stride == lanes.bytes) {
    std::memcpy(to, data + lanes.offset(0), 32 * stride);
    return;
  }
  with_width(lanes.bytes, [&](auto width) {
    visit_lanes(lanes.active, [&](int lane) {
      std::memcpy(to + static_cast<std::size_t>(lane) * stride, data + lanes.offset(lane), width);
    });
  });
}

// True if the memory already has the value that each lane stores.
inline bool holds(const LaneBytes& lanes, const std::byte* data, const std::byte* values,
                  std::size_t stride) noexcept {
  bool is_same = true;
  visit_lanes(lanes.active, [&](int lane) {
    is_same =
        is_same && std::memcmp(data + lanes.offset(lane),
                               values + static_cast<std::size_t>(lane) * stride, lanes.bytes) == 0;
  });
  return is_same;
}

// Zeroes the results of lanes whose loads were not performed. They count as unwritten.
inline void clear_lanes(std::uint32_t lanes, std::uint32_t bytes, void* to, std::size_t stride,
                        std::uint32_t* written) noexcept {
  visit_lanes(lanes, [&](int lane) {
    std::memset(static_cast<std::byte*>(to) + static_cast<std::size_t>(lane) * stride, 0, bytes);
    if (written != nullptr) written[lane] = 0;
  });
}

inline void scatter(const LaneBytes& lanes, std::byte* data, const std::byte* from,
                    std::size_t stride) noexcept {
  if (lanes.is_row && stride == lanes.bytes) {
    std::memcpy(data + lanes.offset(0), from, 32 * stride);
    return;
  }
  with_width(lanes.bytes, [&](auto width) {
    visit_lanes(lanes.active, [&](int lane) {
      std::memcpy(data + lanes.offset(lane), from + static_cast<std::size_t>(lane) * stride, width);
    });
  });
}

// Records each lane's read; true with `found` and `lane` at the first conflict.
[[nodiscard]] bool note_reads(Shadow& shadow, const LaneBytes& lanes, const Accessor& who,
                              Conflict& found, int& lane);
// The same for writes. Of lanes that store the same value to the same address only the first
// counts.
[[nodiscard]] bool note_writes(Shadow& shadow, const LaneBytes& lanes, const std::byte* values,
                               std::size_t stride, const Accessor& who, Conflict& found, int& lane);
// Lanes that store the same value to the same address as an earlier lane.
std::uint32_t find_repeated_lanes(const LaneBytes& lanes, const std::byte* values,
                                  std::size_t stride);
// The lanes all of whose bytes were written; if some were not, `masks` receives a bit per byte.
std::uint32_t find_written(const Shadow& shadow, const LaneBytes& lanes, std::uint32_t* masks);
// As Shadow::forget_accesses, for the bytes of all lanes.
void forget_lanes(Shadow& shadow, const LaneBytes& lanes);
// Marks the bytes of lanes in `defined` as written; for others only those in `masks` (may be null).
void mark_stored(Shadow& shadow, const LaneBytes& lanes, std::uint32_t defined,
                 const std::uint32_t* masks);

}  // namespace gemmery::emulator
