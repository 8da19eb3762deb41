// SPDX-License-Identifier: Apache-2.0
// Lists of problems by mma.sync: the kernel of gemm/sm80.cuh over the tiles of all problems. The
// launch parameters have the matrices, extents, alpha and beta of each problem.
#pragma once

#include <device/abi/problem_list.hpp>
#include <device/gemm/sm80_grouped.cuh>

namespace gemmery::device {

/// The tiles of a block; the interface is that of Sm80GroupTiles.
template <const abi::Sm80Design& design, class List>
class Sm80ListTiles {
 public:
  __device__ __forceinline__ explicit Sm80ListTiles(const List& list) : list_(list) {}

  __device__ __forceinline__ GroupTile find(unsigned tile) const {
    return find_in_list(list_.problems, tile);
  }
  __device__ static bool is_padding(const GroupTile&) { return false; }

  __device__ __forceinline__ static void keep(KeptGroupTile& kept, unsigned index,
                                              const GroupTile& tile) {
    keep_tile(kept, {.index = index, .tile = tile, .place = {}});
  }
  __device__ __forceinline__ static KeptGroupTile read_again(const KeptGroupTile& kept) {
    return kept;
  }

  /// The parameters of the tile's problem.
  __device__ __forceinline__ abi::Sm80Params params_of(const GroupTile& tile) const {
    const auto& all = list_.problems;
    const unsigned at = tile.group;
    abi::Sm80Params own{};
    own.a = {.data = all.a[at], .batch_stride = 0, .line_stride = all.a_line[at]};
    own.b = {.data = all.b[at], .batch_stride = 0, .line_stride = all.b_line[at]};
    own.out =
        abi::listed_matrix(all.out[at], all.out_line[at], is_column_major(abi::out_is_column));
    own.alpha = all.alpha[at];
    if constexpr (design.has_c) {
      own.c = abi::listed_matrix(list_.c[at], list_.c_line[at], is_column_major(abi::c_is_column));
      own.beta = list_.beta[at];
    }
    own.m = all.m[at];
    own.n = all.n[at];
    own.k = all.k[at];
    own.k_blocks = abi::tiles_along(own.k, design.tile_k);
    return own;
  }

  __device__ __forceinline__ GroupedTilePlace place_of(const GroupTile& tile) const {
    const abi::TilePosition position = abi::position_in_bands<design.raster>(
        0, abi::tiles_along(list_.problems.m[tile.group], design.tile_m),
        abi::tiles_along(list_.problems.n[tile.group], design.tile_n), tile.tile);
    return {.corner = {.batch = 0,
                       .row = position.row * static_cast<unsigned>(design.tile_m),
                       .column = position.column * static_cast<unsigned>(design.tile_n)},
            .first_k = 0};
  }

 private:
  __device__ bool is_column_major(abi::ColumnMajor operand) const {
    return (list_.problems.column_major & operand) != 0;
  }

  const List& list_;
};

/// The kernel: threads and shared memory are those of gemm/sm80.cuh; any grid along x.
template <const abi::Sm80Design& design, class List>
__device__ inline void sm80_list_gemm(const List& list) {
  for_each_grouped_sm80_tile<design, Sm80ListTiles<design, List>>(
      list, [](Sm80Gemm<design>& gemm, const TileShare& share) { gemm.store(share); });
}

}  // namespace gemmery::device
