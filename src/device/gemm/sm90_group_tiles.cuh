// SPDX-License-Identifier: Apache-2.0
// The tiles of groups in an sm90 kernel. The producer warp computes them from the sizes of the
// groups and sends them to the consumers through shared memory:
//
//   sizes of groups, or a table --schedule/grouped_tiles--> FoundGroupTiles
//   labels of rows or columns --schedule/labelled_tiles--> FoundGroupTiles
//   a list of problems --sm90_listed_tiles--> ListedTiles
//     | GroupTileSender: one lane, when all consumer warps have read the record's previous tile
//   records in shared memory, a ring between barriers (pipeline/stage_ring)
//     | ReceivedGroupTiles: every lane of the consumers
#pragma once

#include <device/abi/groups.hpp>
#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/abi/sm90_shared.hpp>
#include <device/abi/tile_order.hpp>
#include <device/epilogue/output_place.cuh>
#include <device/gemm/sm90_phases.cuh>
#include <device/pipeline/stage_ring.cuh>
#include <device/ptx/async_copy.cuh>
#include <device/ptx/shared_memory.cuh>
#include <device/ptx/warp.cuh>
#include <device/schedule/grouped_tiles.cuh>
#include <device/schedule/labelled_tiles.cuh>

namespace gemmery::device {

/// A tile as consumers receive it, in units of 16 bytes.
struct GroupTileRecord {
  unsigned place[4];  // row, column, batch, row_end of OutputPlace
  unsigned work[4];   // its column_end, blocks of k (0 after the last), elements of k, group_begin
};

/// The records in shared memory, and their barriers.
template <const abi::Sm90Design& design>
struct GroupTilesShared {
  alignas(16) GroupTileRecord records[abi::group_tile_records];
  StageBarriers<abi::group_tile_records> barriers;
};

/// The rows of A of a tile, if they are found by indices.
template <const abi::Sm90Design& design>
struct GatheredRowsShared {
  int rows[design.tile_m];
};

/// The tiles of one block, every n-th of all groups for n blocks. All lanes of a warp use it
/// together.
template <const abi::Sm90Design& design>
class FoundGroupTiles {
 public:
  __device__ __forceinline__ explicit FoundGroupTiles(const abi::Sm90Params& params)
      : params_(params), groups_(with_groups(params).groups), next_(blockIdx.x) {}

  /// Finds the next tile, or that there is none.
  __device__ __forceinline__ void find_next() {
    if constexpr (design.has_group_table) {
      tile_ = find_in_table(groups_, table_of(params_), next_);
      next_ += gridDim.x;
    } else if (groups_.form == abi::GroupForm::labels) {
      do {
        tile_ = find_labelled_tile(groups_, ptx::opaque(tile_extent()), tiles_across(), next_);
        next_ += gridDim.x;
      } while (tile_.is_found && size() == 0);  // skips tiles of padding only
    } else {
      tile_ = GroupScan(groups_, tile_extent(), tiles_across()).find_from(place_, next_);
      next_ += gridDim.x;
    }
  }

  __device__ bool is_found() const { return tile_.is_found; }

  __device__ __forceinline__ GroupTileRecord record(const OutputPlace& place) const {
    return {.place = {place.row, place.column, place.batch, place.row_end},
            .work = {place.column_end, is_found() ? k_blocks() : 0U, depth(), place.group_begin}};
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
        .column_end = is_of_n() ? tile_.end : params_.n,
        .group_begin = tile_.begin};
  }

  /// The elements of k of the tile's group, if groups differ in them, otherwise no limit: TMA fills
  /// elements beyond the matrices with zeros. With alpha = 0 there are none.
  __device__ unsigned depth() const {
    if (!is_of_k()) return 0xffffffffU;
    return params_.first_k == 0 ? size() : 0U;
  }
  /// At least one; if the group has no k, the block's k are all out of bounds.
  __device__ unsigned k_blocks() const {
    if (!is_of_k()) return params_.k_blocks;
    return max(abi::tiles_along(depth(), abi::tile_k(design)), 1U);
  }
  /// The coordinate of its first k.
  __device__ int first_k() const {
    constexpr int beyond = 1 << 30;
    if (!is_of_k()) return params_.first_k;
    return depth() == 0 ? beyond : static_cast<int>(tile_.begin);
  }

 private:
  // The size of a tile along the extent that differs; and the number of tiles along the other one.
  __device__ unsigned tile_extent() const {
    return static_cast<unsigned>(is_of_n() ? design.tile_n : design.tile_m);
  }
  __device__ unsigned tiles_across() const {
    return is_of_k() ? rows() * columns() : is_of_n() ? rows() : columns();
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
  GroupTile tile_{};
  GroupScanPlace place_{};
};

/// One lane of the producer sends each tile to the consumers, and finally an end mark.
template <const abi::Sm90Design& design>
class GroupTileSender {
 public:
  __device__ __forceinline__ explicit GroupTileSender(GroupTilesShared<design>& shared)
      : records_(ptx::cvta_shared(&shared.records)), ring_(ptx::cvta_shared(&shared.barriers)) {}

  __device__ __forceinline__ void send(const GroupTileRecord& record) {
    ring_.wait_for_release(cursor_);
    const unsigned address = records_ + cursor_.stage * sizeof record;
    ptx::st_shared_v4(address, record.place);
    ptx::st_shared_v4(address + 16, record.work);
    ring_.publish(cursor_);
    cursor_.advance();
  }

 private:
  unsigned records_;
  GroupTileRing ring_;
  GroupTileRing::Cursor cursor_;
};

/// The tiles that the producer has found, in the consumers. All lanes of a warp use it together.
template <const abi::Sm90Design& design>
class ReceivedGroupTiles {
 public:
  __device__ __forceinline__ explicit ReceivedGroupTiles(GroupTilesShared<design>& shared)
      : records_(ptx::cvta_shared(&shared.records)), ring_(ptx::cvta_shared(&shared.barriers)) {
    receive();
  }

  __device__ bool is_done() const { return k_blocks_ == 0; }
  __device__ static constexpr bool is_first() { return false; }  // no design takes turns
  __device__ static constexpr bool is_last() { return false; }
  __device__ __forceinline__ void advance() { receive(); }
  __device__ __forceinline__ void advance_by(unsigned count) {
    for (; count > 0 && !is_done(); --count) receive();
  }

  /// The tile's place in out, or in the matrix of its group.
  __device__ const OutputPlace& position() const { return place_; }
  __device__ unsigned k_blocks() const { return k_blocks_; }
  /// The elements of k of the tile's group, if groups differ in them, otherwise no limit.
  __device__ unsigned depth() const { return depth_; }

 private:
  /// Reads a record and releases it, when all lanes have read it.
  __device__ __forceinline__ void receive() {
    const auto filled = ring_.wait_for_stage(cursor_);
    const unsigned address = records_ + cursor_.stage * sizeof(GroupTileRecord);
    unsigned place[4];
    unsigned work[4];
    ptx::ld_shared_v4(place, address);
    ptx::ld_shared_v4(work, address + 16);
    __syncwarp();
    GroupTileRing::release(filled, threadIdx.x % 32);
    cursor_.advance();
    place_ = {place[0], place[1], place[2], place[3], work[0], work[3]};
    k_blocks_ = ptx::same_in_warp(work[1]);
    depth_ = ptx::same_in_warp(work[2]);
  }

  unsigned records_;
  GroupTileRing ring_;
  GroupTileRing::Cursor cursor_;
  OutputPlace place_;
  unsigned k_blocks_;
  unsigned depth_;
};

}  // namespace gemmery::device
