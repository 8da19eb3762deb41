// SPDX-License-Identifier: Apache-2.0
// The tiles of groups in an sm90 kernel: every warp that needs them finds the same ones in the
// sizes of the groups.
#pragma once

#include <device/abi/groups.hpp>
#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/abi/tile_order.hpp>
#include <device/epilogue/output_place.cuh>
#include <device/schedule/grouped_tiles.cuh>

namespace gemmery::device {

/// The tiles of one block, every n-th of all groups for n blocks. All lanes of a warp construct and
/// advance it together.
template <abi::Sm90Design design>
class PersistentGroupTiles {
 public:
  __device__ __forceinline__ PersistentGroupTiles(const abi::Sm90Params& params,
                                                  const abi::GroupParams& groups)
      : params_(params), groups_(groups), next_(blockIdx.x) {
    find();
  }

  __device__ bool is_done() const { return !tile_.is_found; }
  __device__ bool is_first() const { return next_ < gridDim.x; }
  __device__ static constexpr bool is_last() { return false; }  // unknown before the next scan
  __device__ __forceinline__ void advance() {
    next_ += gridDim.x;
    find();
  }
  __device__ __forceinline__ void advance_by(unsigned count) {
    next_ += count * gridDim.x;
    find();
  }

  /// The tile's place in out, or in the matrix of its group.
  __device__ __forceinline__ OutputPlace position() const {
    const abi::TilePosition position = abi::position_in_bands<design.raster>(
        tile_.group, is_of_m() ? abi::tiles_along(size(), design.tile_m) : rows(),
        is_of_n() ? abi::tiles_along(size(), design.tile_n) : columns(), tile_.tile);
    return {
        .row = position.row * static_cast<unsigned>(design.tile_m) + (is_of_m() ? tile_.begin : 0U),
        .column =
            position.column * static_cast<unsigned>(design.tile_n) + (is_of_n() ? tile_.begin : 0U),
        .batch = tile_.group,
        .row_end = is_of_m() ? tile_.end : params_.m,
        .column_end = is_of_n() ? tile_.end : params_.n};
  }

  /// The elements of k of the tile's group, if groups differ in them, otherwise as many as can be:
  /// TMA fills what is beyond the matrices. With alpha = 0 there are none.
  __device__ unsigned depth() const {
    if (!is_of_k()) return 0xffffffffU;
    return params_.first_k == 0 ? size() : 0U;
  }
  /// At least one, whose k are all beyond the matrices if the group has none.
  __device__ unsigned k_blocks() const {
    if (!is_of_k()) return params_.k_blocks;
    return max(abi::tiles_along(depth(), abi::tile_k(design)), 1U);
  }
  __device__ int first_k() const {
    constexpr int beyond = 1 << 30;
    if (!is_of_k()) return params_.first_k;
    return depth() == 0 ? beyond : static_cast<int>(tile_.begin);
  }

 private:
  __device__ __forceinline__ void find() {
    if constexpr (design.has_group_table) {
      tile_ = find_in_table(groups_, table_of(params_), next_);
    } else {
      const unsigned across = is_of_k() ? rows() * columns() : is_of_n() ? rows() : columns();
      const GroupScan scan(
          groups_, static_cast<unsigned>(is_of_n() ? design.tile_n : design.tile_m), across);
      tile_ = scan.find_from(place_, next_);
    }
  }

  // Tiles along all of out.
  __device__ unsigned rows() const { return abi::tiles_along(params_.m, design.tile_m); }
  __device__ unsigned columns() const { return abi::tiles_along(params_.n, design.tile_n); }
  __device__ unsigned size() const { return tile_.end - tile_.begin; }
  __device__ bool is_of_m() const { return groups_.ragged == abi::RaggedExtent::m; }
  __device__ bool is_of_n() const { return groups_.ragged == abi::RaggedExtent::n; }
  __device__ bool is_of_k() const { return groups_.ragged == abi::RaggedExtent::k; }

  const abi::Sm90Params& params_;
  const abi::GroupParams& groups_;
  unsigned next_;
  GroupTile tile_;
  GroupScanPlace place_{};
};

}  // namespace gemmery::device
