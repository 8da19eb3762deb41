// SPDX-License-Identifier: Apache-2.0
#include "emulator/memory/lane_bytes.hpp"

namespace gemmery::emulator {
namespace {

// True if each active lane's bytes have higher addresses than those of the lane before: the usual
// case.
bool ascends(const LaneBytes& lanes) noexcept {
  if (lanes.is_row) return true;
  std::uint64_t before = 0;
  bool does = true;
  visit_lanes(lanes.active, [&](int lane) {
    const std::uint64_t behind = lanes.addresses[lane] + 1;
    does &= behind > before;
    before = behind;
  });
  return does;
}

// A fast test: true only if no two lanes overlap. It recognises lanes within 64 consecutive slots
// and, for columns of tiles, rows of 64 slots that are shifted against each other.
bool are_surely_apart(const LaneBytes& lanes) noexcept {
  const auto shift = std::countr_zero(lanes.bytes);
  std::uint64_t in_line = 0, in_column = 0;
  visit_lanes(lanes.active, [&](int lane) {
    const std::uint64_t place = lanes.addresses[lane] >> shift;
    in_line |= std::uint64_t{1} << (place & 63);
    in_column |= std::uint64_t{1} << ((place ^ place >> 6) & 63);
  });
  const int count = std::popcount(lanes.active);
  return std::popcount(in_line) == count || std::popcount(in_column) == count;
}

}  // namespace

// Lanes are naturally aligned and of one width, so two of them share all bytes or none.
std::uint32_t find_repeated_lanes(const LaneBytes& lanes, const std::byte* values,
                                  std::size_t stride) {
  std::uint32_t repeated = 0;
  visit_lanes(lanes.active, [&](int lane) {
    const std::uint32_t earlier = lanes.active & ((1u << lane) - 1) & ~repeated;
    for (std::uint32_t rest = earlier; rest != 0; rest &= rest - 1) {
      const int other = std::countr_zero(rest);
      if (lanes.addresses[other] != lanes.addresses[lane]) continue;
      if (std::memcmp(values + static_cast<std::size_t>(other) * stride,
                      values + static_cast<std::size_t>(lane) * stride, lanes.bytes) == 0) {
        repeated |= 1u << lane;
        return;
      }
    }
  });
  return repeated;
}

bool note_reads(Shadow& shadow, const LaneBytes& lanes, const Accessor& who, Conflict& found,
                int& lane) {
  lane = shadow.read_lanes(lanes.active, lanes.addresses, lanes.begin, lanes.bytes, who, found);
  return lane >= 0;
}

bool note_writes(Shadow& shadow, const LaneBytes& lanes, const std::byte* values,
                 std::size_t stride, const Accessor& who, Conflict& found, int& lane) {
  std::uint32_t noted = lanes.active;
  if (!ascends(lanes) && !are_surely_apart(lanes))
    noted &= ~find_repeated_lanes(lanes, values, stride);
  lane = shadow.write_lanes(noted, lanes.addresses, lanes.begin, lanes.bytes, who, found);
  return lane >= 0;
}

std::uint32_t find_written(const Shadow& shadow, const LaneBytes& lanes, std::uint32_t* masks) {
  const ByteSpan span = span_of(lanes);
  // For a larger span, checking each lane is cheaper than checking all bytes in between.
  if (span.bytes <= 4096 &&
      shadow.is_written(span.offset, static_cast<std::uint32_t>(span.bytes))) {
    return lanes.active;
  }
  const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << lanes.bytes) - 1);
  std::uint32_t complete = 0;
  visit_lanes(lanes.active, [&](int lane) {
    masks[lane] = static_cast<std::uint32_t>(shadow.written_mask(lanes.offset(lane), lanes.bytes));
    complete |= static_cast<std::uint32_t>(masks[lane] == all) << lane;
  });
  return complete;
}

void forget_lanes(Shadow& shadow, const LaneBytes& lanes) {
  visit_lanes(lanes.active,
              [&](int lane) { shadow.forget_accesses(lanes.offset(lane), lanes.bytes); });
}

void mark_stored(Shadow& shadow, const LaneBytes& lanes, std::uint32_t defined,
                 const std::uint32_t* masks) {
  const auto lane_count = static_cast<std::uint32_t>(std::popcount(lanes.active));
  if ((lanes.active & ~defined) == 0) {
    const ByteSpan span = span_of(lanes);
    if (span.bytes == std::uint64_t{lane_count} * lanes.bytes && ascends(lanes)) {
      shadow.mark_written(span.offset, span.bytes);
      return;
    }
  }
  visit_lanes(lanes.active & defined,
              [&](int lane) { shadow.mark_written(lanes.offset(lane), lanes.bytes); });
  visit_lanes(lanes.active & ~defined, [&](int lane) {
    shadow.mark_unwritten(lanes.offset(lane), lanes.bytes);
    if (masks == nullptr) return;
    for (std::uint32_t byte = 0; byte < lanes.bytes; ++byte) {
      if ((masks[lane] >> byte & 1) != 0) shadow.mark_written(lanes.offset(lane) + byte, 1);
    }
  });
}

}  // namespace gemmery::emulator
