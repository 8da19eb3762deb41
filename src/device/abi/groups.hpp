// SPDX-License-Identifier: Apache-2.0
// The groups of a grouped GEMM as kernels see them: the sizes in memory, and what the host knows
// about them.
#pragma once

#include <device/abi/host_device.hpp>
#include <device/abi/raster.hpp>
#include <device/abi/simt_params.hpp>
#include <device/abi/tile_position.hpp>

namespace gemmery::abi {

/// The contents of the array of sizes: the end of each group; a 0 and the ends; the size of each
/// group, in a shared tensor; the size of each group, in a matrix of its own; or the group of each
/// row or column.
enum class GroupForm : unsigned { ends, prefix, counts, masked, labels };

/// The extent that differs from group to group.
enum class RaggedExtent : unsigned { m, n, k };

struct GroupParams {
  const void* sizes;  // whole numbers of 32 or 64 bits
  GroupForm form;
  RaggedExtent ragged;
  unsigned is_wide;    // 64 bits
  unsigned count;      // of groups
  unsigned extent;     // of all groups together, or of a group's matrix: no group exceeds it
  unsigned alignment;  // a group starts at the next multiple of it after the previous group
};

/// A table of groups that the host makes. Row g has the group's first tile among those of all
/// groups, and the end of its elements; the row after the last one has the number of all tiles.
struct GroupTable {
  static constexpr unsigned most_groups = 320;  // with the other parameters in 4 KB
  struct Row {
    unsigned first_tile;
    unsigned end;
  };
  Row rows[most_groups + 1];
};

/// The parameters of a grouped simt kernel. `gemm` has the extents of all groups together.
struct SimtGroupedParams {
  SimtParams gemm;
  GroupParams groups;
  unsigned clears_outside;  // sets rows or columns of no group to zero
};

/// The same with a table instead of sizes in memory.
struct SimtGroupTableParams {
  SimtParams gemm;
  GroupParams groups;
  GroupTable table;
  unsigned clears_outside;  // sets rows or columns of no group to zero
};

/// An index for each element of groups, -1 for no element. If data is null, element t has index
/// t.
struct IndexParams {
  const void* data;  // whole numbers of 32 or 64 bits
  unsigned is_wide;  // 64 bits
  unsigned divide;   // an element is index / divide
  unsigned extent;   // of the tensor: no element is beyond it
};

/// The same with scales and zero points. Their blocks count from the beginning of all groups.
struct SimtScaledGroupParams {
  SimtParams gemm;
  GroupParams groups;
  unsigned clears_outside;
  CompanionsParams a;
  CompanionsParams b;
};

/// The same for rows or columns that are found by indices.
struct SimtIndexedParams {
  SimtParams gemm;
  GroupParams groups;
  IndexParams gather;
  IndexParams scatter;
  unsigned clears_outside;  // sets rows or columns of no group to zero
};

static_assert(sizeof(IndexParams) == 24);
static_assert(sizeof(SimtIndexedParams) == sizeof(SimtGroupedParams) + 48);
static_assert(sizeof(GroupParams) == 32);
static_assert(sizeof(SimtGroupedParams) == sizeof(SimtParams) + 40);

/// An upper bound on the tiles of all groups of any sizes: every group may end within a tile.
/// `tiles_across`: tiles along the other extent; if K differs, all tiles of a matrix.
GEMMERY_HOST_DEVICE
constexpr UInt64 most_group_tiles(const GroupParams& groups, unsigned tile, unsigned tiles_across) {
  const UInt64 whole = groups.extent / tile;
  const UInt64 parts = groups.extent % tile != 0 ? 1 : 0;
  if (groups.ragged == RaggedExtent::k) return UInt64{groups.count} * tiles_across;
  if (groups.form == GroupForm::labels) return (whole + parts) * UInt64{tiles_across};
  if (groups.form == GroupForm::masked)
    return groups.count * (whole + parts) * UInt64{tiles_across};
  return (whole + groups.count) * UInt64{tiles_across};
}

/// The position of a tile among those of a matrix, in the bands of a raster, for extents that only
/// the device knows. There are fewer than 2^31 tiles.
template <Raster raster>
GEMMERY_HOST_DEVICE
constexpr TilePosition position_in_bands(unsigned batch, unsigned tile_rows, unsigned tile_columns,
                                         unsigned tile) {
  constexpr auto width = static_cast<unsigned>(raster.band);
  constexpr bool is_along_m = raster.along == Along::m;
  const unsigned extent = is_along_m ? tile_rows : tile_columns;
  const unsigned length = is_along_m ? tile_columns : tile_rows;
  const unsigned band = tile / length / width;
  const unsigned in_band = tile - band * width * length;
  const unsigned left = extent - band * width;
  const unsigned own = left < width ? left : width;  // of the band
  const unsigned along = in_band / own;
  const unsigned across = band * width + in_band - along * own;
  if constexpr (is_along_m)
    return {.batch = batch, .row = across, .column = along};
  else
    return {.batch = batch, .row = along, .column = across};
}

}  // namespace gemmery::abi
