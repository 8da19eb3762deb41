// SPDX-License-Identifier: Apache-2.0
// The regions of reductions in grouped products (abi/epilogue.hpp). Only the device knows how many
// regions a group has:
//
//   a group with the elements [begin, end) of M has ceil((end - begin) / rows) regions of rows
//   their numbers begin at begin / rows + group * group_regions, so that no two groups share one,
//   and all of them are smaller than RegionGrid::rows, which counts numbers
//
// Likewise for N and columns; if K differs, regions are those of a batch. A reduction along the
// extent that differs has a band for each group; the numbers of the group's regions are the places
// of its parts. Any other reduction has a band for each number.
#pragma once

#include <device/abi/epilogue.hpp>
#include <device/abi/groups.hpp>
#include <device/abi/host_device.hpp>

namespace gemmery::abi {

/// True if a reduction combines elements along the extent that differs.
GEMMERY_HOST_DEVICE
constexpr bool reduces_ragged(const EpilogueTensor& tensor, RaggedExtent ragged) {
  return (ragged == RaggedExtent::m && !tensor.varies_m) ||
         (ragged == RaggedExtent::n && !tensor.varies_n);
}

/// Bands of all groups.
GEMMERY_HOST_DEVICE
constexpr unsigned group_band_count(const EpilogueTensor& tensor, const RegionGrid& grid,
                                    RaggedExtent ragged) {
  const bool is_of_group = ragged == RaggedExtent::k || reduces_ragged(tensor, ragged);
  return (tensor.varies_m ? grid.rows : 1) * (tensor.varies_n ? grid.columns : 1) *
         (is_of_group ? grid.batches : 1);
}

/// The number of final values, which is the distance between parts: those of all groups, or of one
/// group if the places of its parts are the numbers of its regions.
GEMMERY_HOST_DEVICE
constexpr UInt64 group_finals(const EpilogueTensor& tensor, const RegionGrid& grid,
                              RaggedExtent ragged, UInt64 m, UInt64 n) {
  const bool has_batches = tensor.varies_l && !reduces_ragged(tensor, ragged);
  return (has_batches ? grid.batches : 1) * (tensor.varies_m ? m : 1) * (tensor.varies_n ? n : 1);
}

/// The number of parts of each final value.
GEMMERY_HOST_DEVICE
constexpr unsigned group_parts(const EpilogueTensor& tensor, const RegionGrid& grid) {
  return (tensor.varies_m ? 1 : grid.rows) * (tensor.varies_n ? 1 : grid.columns) *
         parts_of_region(tensor, grid);
}

GEMMERY_HOST_DEVICE
constexpr unsigned regions_along(unsigned extent, unsigned region) {
  return extent / region + (extent % region != 0 ? 1 : 0);
}

/// A group, for the regions in it.
struct RegionGroup {
  RaggedExtent ragged;
  unsigned group;
  unsigned begin;  // its elements along the extent that differs
  unsigned end;
  unsigned m;  // rows and columns of all of out
  unsigned n;
};

}  // namespace gemmery::abi
