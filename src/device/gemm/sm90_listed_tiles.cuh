// SPDX-License-Identifier: Apache-2.0
// The tiles of a list of problems in an sm90 kernel. The producer's warp finds them by bisection in
// the launch's parameters, and passes them to the consumers like tiles of groups
// (sm90_group_tiles.cuh).
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/epilogue/listed_problem.cuh>
#include <device/epilogue/output_place.cuh>
#include <device/gemm/sm90_group_tiles.cuh>
#include <device/schedule/grouped_tiles.cuh>

namespace gemmery::device {

/// The tiles of one block, like FoundGroupTiles; a tile's group is its problem.
template <const abi::Sm90Design& design>
class ListedTiles {
 public:
  __device__ __forceinline__ explicit ListedTiles(const abi::Sm90Params& params)
      : list_(with_list<design>(params).list.problems), next_(blockIdx.x) {}

  __device__ __forceinline__ void find_next() {
    found_ = find_in_list(list_, next_);
    next_ += gridDim.x;
  }

  __device__ bool is_found() const { return found_.is_found; }

  __device__ __forceinline__ GroupTileRecord record(const OutputPlace& place) const {
    constexpr unsigned no_limit = 0xffffffffU;  // TMA fills k beyond a matrix with zeros
    return {.place = {place.row, place.column, place.batch, place.row_end},
            .work = {place.column_end, is_found() ? k_blocks() : 0U, no_limit, 0U}};
  }

  /// The tile's position in its problem's matrix of out.
  __device__ __forceinline__ OutputPlace position() const {
    const unsigned rows = list_.m[found_.group];
    const unsigned columns = list_.n[found_.group];
    const abi::TilePosition position = abi::position_in_bands<design.raster>(
        found_.group, abi::tiles_along(rows, design.tile_m),
        abi::tiles_along(columns, design.tile_n), found_.tile);
    return {.row = position.row * static_cast<unsigned>(design.tile_m),
            .column = position.column * static_cast<unsigned>(design.tile_n),
            .batch = found_.group,
            .row_end = rows,
            .column_end = columns,
            .group_begin = 0};
  }

  /// At least one block, which is out of bounds if the problem has K = 0.
  __device__ unsigned k_blocks() const { return max(abi::tiles_along(depth(), tile_k), 1U); }
  /// The coordinate of the first k.
  __device__ int first_k() const {
    constexpr int beyond = 1 << 30;
    return depth() == 0 ? beyond : 0;
  }

 private:
  static constexpr int tile_k = abi::tile_k(design);

  __device__ unsigned depth() const { return list_.k[found_.group]; }

  const abi::ProblemsOfList<ListOf<design.has_c>::Type::most>& list_;
  unsigned next_;
  GroupTile found_{};
};

}  // namespace gemmery::device
