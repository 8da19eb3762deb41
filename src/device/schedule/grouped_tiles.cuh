// SPDX-License-Identifier: Apache-2.0
// The tile scheduler of grouped GEMMs: it finds the group of a tile. A warp scans the sizes of 32
// groups at a time; the host need not know them.
//
//   sizes --ld--> lanes: begin and end of one group each
//     | tiles of each group, their inclusive sum over the lanes
//   the first lane whose sum exceeds the tile's number has its group
//
// With a table from the host, the group (or the problem of a list) is found by bisection in it.
#pragma once

#include <device/abi/groups.hpp>
#include <device/abi/problem_list.hpp>
#include <device/abi/tile_order.hpp>
#include <device/ptx/memory.cuh>
#include <device/ptx/warp.cuh>

namespace gemmery::device {

/// A tile of one group; the group's elements are [begin, end) along the extent that differs.
struct GroupTile {
  bool is_found;  // false beyond the last tile of all groups
  unsigned group;
  unsigned begin;
  unsigned end;
  unsigned tile;  // among those of the group
};

/// The place at which a scan continues: a multiple of 32 groups, and the numbers of tiles and
/// elements before it.
struct GroupScanPlace {
  unsigned group;
  unsigned tiles;
  unsigned elements;
};

/// A mask of the elements from `first` on that are in [begin, end): bit i is element first + i.
__device__ inline unsigned elements_between(unsigned begin, unsigned end, unsigned first) {
  const unsigned low = begin > first ? begin - first : 0;
  const unsigned high = end > first ? min(end - first, 32U) : 0;
  return low < high ? 0xffffffffU >> (32 - high) & 0xffffffffU << low : 0;
}

/// The bits that are set in any lane. Called by all lanes; all lanes get the same result.
__device__ inline unsigned in_any_lane(unsigned bits) {
#pragma unroll
  for (unsigned distance = 16; distance > 0; distance /= 2)
    bits |= ptx::value_of_lane(bits, ptx::lane_id() ^ distance);
  return bits;
}

class GroupScan {
 public:
  /// `tile`: elements of a tile along the extent that differs. `tiles_across`: tiles along the
  /// other extent; if K differs, all tiles of a matrix.
  __device__ GroupScan(const abi::GroupParams& groups, unsigned tile, unsigned tiles_across)
      : groups_(groups), tile_(tile), tiles_across_(tiles_across), lane_(ptx::tid_x() % 32) {}

  /// Called by all lanes of a warp for the same tile; all lanes get the same result.
  __device__ GroupTile find(unsigned tile) const {
    GroupScanPlace start{};
    return find_from(start, tile);
  }

  /// The same, continuing at the place of an earlier tile; `place` is set to that of this tile.
  __device__ GroupTile find_from(GroupScanPlace& place, unsigned tile) const {
#pragma unroll 1
    for (; place.group < groups_.count; place.group += 32) {
      const WarpSpan span = span_in_warp(place.group, place.elements);
      const unsigned own = span.is_group ? tiles_of(span.end - span.begin) : 0;
      const unsigned sum = inclusive_sum(own) + place.tiles;
      const unsigned not_yet = ptx::lanes_where(sum <= tile);
      if (not_yet != 0xffffffffU) {
        const unsigned lane = ptx::lowest_lane(~not_yet);
        return {.is_found = true,
                .group = place.group + lane,
                .begin = ptx::value_of_lane(span.begin, lane),
                .end = ptx::value_of_lane(span.end, lane),
                .tile = tile - ptx::value_of_lane(sum - own, lane)};
      }
      place.tiles = ptx::value_of_lane(sum, 31);
      place.elements += span.elements;
    }
    return {};
  }

  /// Any thread may call it. Not for labels.
  __device__ bool is_empty(unsigned group) const {
    const Span span = span_of(group);
    return span.begin == span.end;
  }

  /// A mask of the elements from `first` on that belong to groups of one tensor: bit i is element
  /// first + i. Called by all lanes, with the same `first`; all lanes get the same result.
  __device__ unsigned find_members(unsigned first) const {
    unsigned members = 0;
    unsigned elements = 0;
#pragma unroll 1
    for (unsigned group = 0; group < groups_.count; group += 32) {
      const WarpSpan span = span_in_warp(group, elements);
      members |= elements_between(span.begin, span.end, first);
      elements += span.elements;
    }
    return in_any_lane(members);
  }

  /// The same for the matrix of one group.
  __device__ unsigned find_members_of(unsigned group, unsigned first) const {
    return elements_between(0, size_at(group), first);
  }

 private:
  struct Span {
    unsigned begin;
    unsigned end;  // of counts: the size
  };

  struct WarpSpan {
    bool is_group;
    unsigned begin;
    unsigned end;
    unsigned elements;  // of the warp's groups, with their padding, if sizes are counts
  };

  /// The elements of the lane's group, for the 32 groups from `first` on. `before`: the elements of
  /// all earlier groups.
  __device__ WarpSpan span_in_warp(unsigned first, unsigned before) const {
    const unsigned group = first + lane_;
    const bool is_group = group < groups_.count;
    const Span span = is_group ? span_of(group) : Span{0, 0};
    if (groups_.form != abi::GroupForm::counts) return {is_group, span.begin, span.end, 0};
    const unsigned padded = round_up(span.end);
    const unsigned sum = inclusive_sum(padded);
    const unsigned begin = min(before + sum - padded, groups_.extent);
    const unsigned end = min(begin + span.end, groups_.extent);
    return {is_group, begin, end, ptx::value_of_lane(sum, 31)};
  }

  /// The index-th size, clamped so that invalid sizes cause no access outside a tensor.
  __device__ unsigned size_at(unsigned index) const {
    if (groups_.is_wide != 0) {
      const abi::Int64 size =
          ptx::ld_global_int64(static_cast<const abi::Int64*>(groups_.sizes) + index);
      return size < 0 ? 0U : static_cast<unsigned>(min(size, abi::Int64{groups_.extent}));
    }
    const int size = ptx::ld_global_int(static_cast<const int*>(groups_.sizes) + index);
    return size < 0 ? 0U : min(static_cast<unsigned>(size), groups_.extent);
  }

  __device__ unsigned round_up(unsigned value) const {
    const unsigned rest = value % groups_.alignment;
    return rest == 0 ? value : value - rest + groups_.alignment;
  }

  __device__ Span span_of(unsigned group) const {
    if (groups_.form == abi::GroupForm::counts || groups_.form == abi::GroupForm::masked)
      return {0, size_at(group)};
    const bool has_zero = groups_.form == abi::GroupForm::prefix;
    const unsigned end = size_at(group + (has_zero ? 1 : 0));
    const unsigned before = has_zero ? size_at(group) : group == 0 ? 0U : size_at(group - 1);
    if (end == before) return {end, end};
    const unsigned begin = min(round_up(before), groups_.extent);
    return {begin, max(begin, end)};
  }

  /// If K differs, every group has all tiles of its matrix, whatever its K is.
  __device__ unsigned tiles_of(unsigned size) const {
    if (groups_.ragged == abi::RaggedExtent::k) return tiles_across_;
    return abi::tiles_along(size, static_cast<int>(tile_)) * tiles_across_;
  }

  __device__ unsigned inclusive_sum(unsigned value) const {
#pragma unroll
    for (unsigned distance = 1; distance < 32; distance *= 2) {
      const unsigned below = ptx::value_of_lane_below(value, distance);
      if (lane_ >= distance) value += below;
    }
    return value;
  }

  const abi::GroupParams& groups_;
  unsigned tile_;
  unsigned tiles_across_;
  // Read for each scan: in sm80 a lane number that was kept across the mainloop spilled (ptxas
  // 13.0).
  unsigned lane_;
};

struct TableSpan {
  unsigned begin;
  unsigned end;
};

/// The elements of a group of the host's table.
__device__ inline TableSpan span_in_table(const abi::GroupParams& groups,
                                          const abi::GroupTable& table, unsigned group) {
  const bool follows = group > 0 && groups.form != abi::GroupForm::masked;
  const unsigned before = follows ? table.rows[group - 1].end : 0;
  const unsigned rest = before % groups.alignment;
  const unsigned begin = rest == 0 ? before : before - rest + groups.alignment;
  return {begin, max(begin, table.rows[group].end)};
}

/// The last of `count` rows whose first tile is at most `tile`. First tiles ascend; among rows with
/// equal first tiles only the last one has tiles.
template <class FirstTile>
__device__ __forceinline__ unsigned find_row(unsigned count, unsigned tile,
                                             FirstTile&& first_tile) {
  unsigned row = 0;
  unsigned beyond = count;
#pragma unroll 1
  while (beyond - row > 1) {
    const unsigned middle = (row + beyond) / 2;
    if (first_tile(middle) <= tile)
      row = middle;
    else
      beyond = middle;
  }
  return row;
}

/// The group of a tile in the host's table.
__device__ inline GroupTile find_in_table(const abi::GroupParams& groups,
                                          const abi::GroupTable& table, unsigned tile) {
  if (tile >= table.rows[groups.count].first_tile) return {};
  const unsigned group =
      find_row(groups.count, tile, [&](unsigned row) { return table.rows[row].first_tile; });
  const TableSpan span = span_in_table(groups, table, group);
  return {.is_found = true,
          .group = group,
          .begin = span.begin,
          .end = span.end,
          .tile = tile - table.rows[group].first_tile};
}

/// The problem of a tile in a list, as a group without elements.
template <unsigned most>
__device__ __forceinline__ GroupTile find_in_list(const abi::ProblemsOfList<most>& list,
                                                  unsigned tile) {
  if (tile >= list.first_tile[list.count]) return {};
  const unsigned problem =
      find_row(list.count, tile, [&](unsigned row) { return list.first_tile[row]; });
  return {.is_found = true,
          .group = problem,
          .begin = 0,
          .end = 0,
          .tile = tile - list.first_tile[problem]};
}

/// Like GroupScan::find_members, with the host's table.
__device__ inline unsigned find_members_in_table(const abi::GroupParams& groups,
                                                 const abi::GroupTable& table, unsigned first) {
  unsigned members = 0;
#pragma unroll 1
  for (unsigned group = ptx::lane_id(); group < groups.count; group += 32) {
    const TableSpan own = span_in_table(groups, table, group);
    members |= elements_between(own.begin, own.end, first);
  }
  return in_any_lane(members);
}

}  // namespace gemmery::device
