// SPDX-License-Identifier: Apache-2.0
// Groups by a label for each row (or column). The label of a tile's first row applies to the whole
// tile, since labels change only at multiples of the tile, except to padding after a group's last
// row.
#pragma once

#include <device/abi/groups.hpp>
#include <device/abi/tile_order.hpp>
#include <device/ptx/memory.cuh>
#include <device/ptx/warp.cuh>
#include <device/schedule/grouped_tiles.cuh>

namespace gemmery::device {

/// The label of one element; that of padding (-1) if it names no group.
__device__ inline int label_at(const abi::GroupParams& groups, unsigned element) {
  const abi::Int64 label =
      groups.is_wide != 0
          ? ptx::ld_global_int64(static_cast<const abi::Int64*>(groups.sizes) + element)
          : ptx::ld_global_int(static_cast<const int*>(groups.sizes) + element);
  return label < 0 || label >= groups.count ? -1 : static_cast<int>(label);
}

/// Like GroupScan::find_members: the elements that have the label of a group.
__device__ inline unsigned find_labelled_members(const abi::GroupParams& groups, unsigned first) {
  const unsigned element = first + ptx::lane_id();
  return ptx::lanes_where(element < groups.extent && label_at(groups, element) >= 0);
}

/// All lanes of a warp call it for the same tile and get the same result. A tile of padding has no
/// elements. `extent` is GroupScan's `tile`; `tiles_across` is the same.
__device__ inline GroupTile find_labelled_tile(const abi::GroupParams& groups, unsigned extent,
                                               unsigned tiles_across, unsigned tile) {
  const unsigned place = tile / tiles_across;
  if (place >= abi::tiles_along(groups.extent, static_cast<int>(extent))) return {};
  const unsigned begin = place * extent;
  const unsigned most = min(extent, groups.extent - begin);
  const int group = label_at(groups, begin);
  const unsigned lane = ptx::tid_x() % 32;
  unsigned elements = 0;
  for (unsigned first = 0; first < most; first += 32) {
    const unsigned element = first + lane;
    const bool is_own = group >= 0 && element < most && label_at(groups, begin + element) == group;
    elements += static_cast<unsigned>(__popc(static_cast<int>(ptx::lanes_where(is_own))));
  }
  return {.is_found = true,
          .group = static_cast<unsigned>(max(group, 0)),
          .begin = begin,
          .end = begin + elements,
          .tile = tile % tiles_across};
}

}  // namespace gemmery::device
