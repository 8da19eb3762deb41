// SPDX-License-Identifier: Apache-2.0
// The tiles and the ranges of k that an sm90 block multiplies, and the tiles' places in out.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/epilogue/output_place.cuh>
#include <device/gemm/sm90_phases.cuh>
#include <device/schedule/persistent_tiles.cuh>

namespace gemmery::device {

/// The tile scheduler of a design.
template <const abi::Sm90Design& design>
struct TilesOf {
  using Work = typename PhaseIf<design.split != abi::SplitMode::none,
                                PersistentShares<design.split, design.raster>,
                                PersistentTiles<design.raster>>::Type;
  using Type = typename PhaseIf<design.has_groups, ReceivedGroupTiles<design>, Work>::Type;
};

template <const abi::Sm90Design& design>
class Sm90Places {
 public:
  using Tiles = typename TilesOf<design>::Type;

  /// `rank` of the block in its cluster.
  __device__ Sm90Places(const abi::Sm90Params& params, unsigned rank)
      : params_(params), rank_(rank) {}

  /// For kernels without groups.
  __device__ Tiles all_tiles() const {
    if constexpr (has_parts)
      return {params_.order, params_.split, params_.k_blocks, cluster_size};
    else
      return {params_.order, cluster_size};
  }

  /// The blocks of k of a tile that this block multiplies.
  __device__ unsigned k_blocks_of(const Tiles& tiles) const {
    if constexpr (design.has_groups)
      return tiles.k_blocks();
    else if constexpr (has_parts)
      return tiles.share().k_blocks;
    else if constexpr (design.has_phases)
      return with_phases(params_).phases[tiles.position().batch].k_blocks;
    else
      return params_.k_blocks;
  }
  __device__ static unsigned first_k_block_of(const Tiles& tiles) {
    if constexpr (has_parts)
      return tiles.share().first_k_block;
    else
      return 0;
  }

  /// The tile's elements of k, if groups differ in them, otherwise no limit.
  __device__ static unsigned depth_of(const Tiles& tiles) {
    if constexpr (design.has_groups)
      return tiles.depth();
    else
      return 0xffffffffU;
  }
  /// The coordinate of its first k.
  __device__ int first_k_of(const Tiles& tiles) const {
    constexpr unsigned tile_k = abi::tile_k(design);
    return params_.first_k + static_cast<int>(split_rank() * params_.k_blocks * tile_k) +
           static_cast<int>(first_k_block_of(tiles) * tile_k);
  }

  /// The k of a tile, of those of the operands: the first one, and that behind the last one of its
  /// group.
  struct KRange {
    unsigned first;
    unsigned end;
  };
  __device__ KRange k_range_of(const Tiles& tiles, const OutputPlace& place) const {
    constexpr unsigned no_limit = 0xffffffffU;
    const unsigned depth = depth_of(tiles);
    if (depth != no_limit) return {place.group_begin, place.group_begin + depth};
    return {static_cast<unsigned>(first_k_of(tiles)), no_limit};
  }

  /// The rank of this block among those that split k in a cluster.
  __device__ unsigned split_rank() const { return splits_k ? rank_ : 0; }

  __device__ unsigned rows_left(const OutputPlace& place) const {
    const unsigned end = row_end<design>(params_, place);
    return place.row < end ? end - place.row : 0;
  }

  /// The first row and column of a consumer's share of a tile.
  struct Share {
    unsigned row;
    unsigned column;
  };

  __device__ static Share share_of(unsigned consumer) {
    if constexpr (takes_turns) return {.row = 0, .column = 0};
    if constexpr (abi::splits_columns(design))
      return {.row = 0, .column = consumer * columns_per_consumer};
    return {.row = consumer * rows_per_consumer, .column = 0};
  }

  /// This block's tile among those of the cluster.
  __device__ OutputPlace place_of(const abi::TilePosition& tile) const {
    const unsigned row = tile.row * design.cluster_m + (design.cluster_m > 1 ? rank_ : 0);
    const unsigned column = tile.column * design.cluster_n + (design.cluster_n > 1 ? rank_ : 0);
    return {.row = row * design.tile_m, .column = column * design.tile_n, .batch = tile.batch};
  }

  __device__ static OutputPlace place_of(const OutputPlace& tile) { return tile; }

  /// The place of the part of the tile that a consumer of this block stores.
  template <class Position>
  __device__ OutputPlace place_of(const Position& tile, const Share& share) const {
    OutputPlace place = place_of(tile);
    place.row += share.row;
    place.column += share.column + split_rank() * abi::stored_of<design>().tile_n;
    return place;
  }

 private:
  static constexpr unsigned cluster_size = abi::cluster_size(design);
  static constexpr bool splits_k = design.split_k > 1;
  static constexpr bool has_parts = design.split != abi::SplitMode::none;
  static constexpr bool takes_turns = abi::takes_turns(design);
  static constexpr unsigned rows_per_consumer =
      abi::blocks_per_consumer(design) * abi::sm90_block_rows;
  static constexpr unsigned columns_per_consumer = abi::columns_per_consumer(design);

  const abi::Sm90Params& params_;
  unsigned rank_;
};

}  // namespace gemmery::device
