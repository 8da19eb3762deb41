// SPDX-License-Identifier: Apache-2.0
// The groups of a grouped GEMM as kernels see them: where their sizes are in memory, and what the
// host knows about them.
#pragma once

#include <device/abi/host_device.hpp>
#include <device/abi/simt_params.hpp>

namespace gemmery::abi {

/// What the array of sizes holds: the end of each group; the same after a leading 0; the size of
/// each group, where groups are adjacent; or the size of each group in a matrix of its own.
enum class GroupForm : unsigned { ends, prefix, counts, masked };

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

/// The parameters of a grouped simt kernel. `gemm` has the extents of all groups together.
struct SimtGroupedParams {
  SimtParams gemm;
  GroupParams groups;
};

static_assert(sizeof(GroupParams) == 32);
static_assert(sizeof(SimtGroupedParams) == sizeof(SimtParams) + 32);

/// An upper bound on the tiles of all groups, whatever their sizes: every group may end within a
/// tile. `tiles_across`: tiles along the other extent; where K differs, all tiles of a matrix.
GEMMERY_HOST_DEVICE
constexpr UInt64 most_group_tiles(const GroupParams& groups, unsigned tile, unsigned tiles_across) {
  const UInt64 whole = groups.extent / tile;
  const UInt64 parts = groups.extent % tile != 0 ? 1 : 0;
  if (groups.ragged == RaggedExtent::k) return UInt64{groups.count} * tiles_across;
  if (groups.form == GroupForm::masked)
    return groups.count * (whole + parts) * UInt64{tiles_across};
  return (whole + groups.count) * UInt64{tiles_across};
}

}  // namespace gemmery::abi
