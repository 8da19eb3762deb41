// SPDX-License-Identifier: Apache-2.0
// Grouped products by mma.sync: the kernel of gemm/sm80.cuh over the tiles of groups, whose loads
// and stores are clipped to their group.
//
//   sizes of groups, or the host's table of them
//     | schedule/grouped_tiles: the group of this block's tile, its beginning and its end
//   Sm80Gemm with the group's ends instead of the tensors' extents
//     | k: elements beyond the group's end become zero in both operands on the way to shared memory
//     | rows by index: loads and stores use the rows that indices name, in designs with indices
//   the group's part of out
//   zeros in elements of no group, in designs that clear them
//
// During the mainloop the tile is kept in shared memory, after the stages: in registers, 24 to 52
// bytes of float32 kernels spilled (ptxas 13.0).
#pragma once

#include <device/abi/sm80_faults.hpp>
#include <device/abi/sm80_grouped_params.hpp>
#include <device/gemm/empty_groups.cuh>
#include <device/gemm/outside_groups.cuh>
#include <device/gemm/sm80.cuh>
#include <device/schedule/grouped_tiles.cuh>
#include <device/schedule/labelled_tiles.cuh>
#include <device/tile/indexed_element.cuh>

namespace gemmery::device {

/// The parameters of a design's kernel.
template <bool has_table, bool has_indices, bool has_scales = false>
struct Sm80GroupParams {
  using Type = abi::Sm80GroupedParams;
};
template <>
struct Sm80GroupParams<false, false, true> {
  using Type = abi::Sm80ScaledGroupParams;
};
template <>
struct Sm80GroupParams<true, false> {
  using Type = abi::Sm80GroupTableParams;
};
template <>
struct Sm80GroupParams<false, true> {
  using Type = abi::Sm80IndexedParams;
};
template <>
struct Sm80GroupParams<true, true> {
  using Type = abi::Sm80IndexedTableParams;
};
template <const abi::Sm80Design& design>
using Sm80GroupParamsOf =
    typename Sm80GroupParams<design.groups == abi::GroupSchedule::host, design.has_indices,
                             design.scales.are_used()>::Type;

/// A block's tile; thread 0 keeps it in shared memory during the mainloop.
struct KeptGroupTile {
  unsigned index;  // of the tile among those of all groups
  GroupTile tile;
  GroupScanPlace place;
};
static_assert(sizeof(KeptGroupTile) <= abi::kept_group_tile_bytes);

/// Called by all threads before the mainloop.
__device__ __forceinline__ void keep_tile(KeptGroupTile& kept, const KeptGroupTile& tile) {
  if (ptx::tid_x() == 0) kept = tile;
  __syncthreads();  // waits for it, and until the stages and the staging tile are free
}

/// The tiles of a block, which requests them in ascending order.
template <const abi::Sm80Design& design>
class Sm80GroupTiles {
  using Params = Sm80GroupParamsOf<design>;

 public:
  __device__ __forceinline__ explicit Sm80GroupTiles(const Params& params) : params_(params) {}

  __device__ __forceinline__ GroupTile find(unsigned tile) {
    if constexpr (design.groups == abi::GroupSchedule::host) {
      return find_in_table(params_.groups, params_.table, tile);
    } else {
      const bool is_of_n = ragged() == abi::RaggedExtent::n;
      const unsigned across = ragged() == abi::RaggedExtent::k ? rows() * columns()
                              : is_of_n                        ? rows()
                                                               : columns();
      const auto extent = static_cast<unsigned>(is_of_n ? design.tile_n : design.tile_m);
      if (has_labels()) return find_labelled_tile(params_.groups, extent, across, tile);
      const GroupScan scan(params_.groups, extent, across);
      if constexpr (design.groups == abi::GroupSchedule::persistent)
        return scan.find_from(place_, tile);
      else
        return scan.find(tile);
    }
  }

  /// True for a tile of labels that belongs to no group.
  __device__ bool is_padding(const GroupTile& tile) const {
    return has_labels() && tile.begin == tile.end;
  }

  __device__ __forceinline__ void keep(KeptGroupTile& kept, unsigned index,
                                       const GroupTile& tile) const {
    keep_tile(kept, {.index = index, .tile = tile, .place = place_});
  }

  /// Called after the mainloop; the scan for the next tile continues at the place of this one.
  __device__ __forceinline__ KeptGroupTile read_again(const KeptGroupTile& kept) {
    place_ = kept.place;
    return kept;
  }

  /// The parameters with the group's ends.
  __device__ __forceinline__ abi::Sm80Params params_of(const GroupTile& tile) const {
    abi::Sm80Params own = params_.gemm;
    if (ragged() == abi::RaggedExtent::m) own.m = tile.end;
    if (ragged() == abi::RaggedExtent::n) own.n = tile.end;
    if (ragged() == abi::RaggedExtent::k)
      own.k = min(own.k, tile.end - tile.begin);  // 0 with alpha = 0
    own.k_blocks = abi::tiles_along(own.k, design.tile_k);
    return own;
  }

  __device__ __forceinline__ GroupedTilePlace place_of(const GroupTile& tile) const {
    const unsigned size = tile.end - tile.begin;
    const bool is_of_m = ragged() == abi::RaggedExtent::m;
    const bool is_of_n = ragged() == abi::RaggedExtent::n;
    const abi::TilePosition position = abi::position_in_bands<design.raster>(
        tile.group, is_of_m ? abi::tiles_along(size, design.tile_m) : rows(),
        is_of_n ? abi::tiles_along(size, design.tile_n) : columns(), tile.tile);
    return {.corner = {.batch = position.batch,
                       .row = position.row * static_cast<unsigned>(design.tile_m) +
                              (is_of_m ? tile.begin : 0U),
                       .column = position.column * static_cast<unsigned>(design.tile_n) +
                                 (is_of_n ? tile.begin : 0U)},
            .first_k = is_of_m || is_of_n ? 0U : tile.begin,
            .group = {.ragged = ragged(),
                      .group = tile.group,
                      .begin = tile.begin,
                      .end = tile.end,
                      .m = params_.gemm.m,
                      .n = params_.gemm.n}};
  }

  /// All threads call it before `keep`, in designs with indices: each looks up some of the rows.
  __device__ __forceinline__ void find_rows(const RowsOfTile& rows, const GroupTile& tile) const {
    __syncthreads();  // waits until rows of the previous tile have been read
    const unsigned first = place_of(tile).corner.row;
#pragma unroll 1
    for (unsigned row = ptx::tid_x(); row < design.tile_m; row += abi::thread_count(design)) {
      const unsigned element = first + row;
      const bool is_there = element < tile.end;
      rows.of_a[row] = is_there ? find_element(params_.gather, element) : no_element;
      rows.of_out[row] = is_there ? find_element(params_.scatter, element) : no_element;
    }
  }

 private:
  // Tiles of all of out.
  __device__ unsigned rows() const { return abi::tiles_along(params_.gemm.m, design.tile_m); }
  __device__ unsigned columns() const { return abi::tiles_along(params_.gemm.n, design.tile_n); }
  __device__ abi::RaggedExtent ragged() const { return params_.groups.ragged; }
  __device__ bool has_labels() const {
    return design.groups == abi::GroupSchedule::device &&
           params_.groups.form == abi::GroupForm::labels;
  }

  const Params& params_;
  GroupScanPlace place_{};
};

/// Calls finish(gemm, share) for every tile of this block, in all groups. Then clears elements of
/// no group, in designs that clear them.
template <const abi::Sm80Design& design, class Tiles, class Params, class Finish>
__device__ __forceinline__ void for_each_grouped_sm80_tile(const Params& params, Finish&& finish) {
  static_assert(abi::find_fault(design) == abi::Sm80Fault::none,
                "find_fault names the field of the design to change");
  extern __shared__ __align__(128) char shared[];
  auto& in_shared = *reinterpret_cast<KeptGroupTile*>(shared + abi::kept_group_tile_offset(design));
  int* const kept_rows = reinterpret_cast<int*>(shared + abi::kept_rows_offset(design));
  const RowsOfTile rows{.of_a = kept_rows, .of_out = kept_rows + design.tile_m};
  Tiles tiles(params);
#pragma unroll 1
  for (unsigned index = blockIdx.x;;) {
    const GroupTile tile = tiles.find(index);
    if (!tile.is_found) break;
    if (tiles.is_padding(tile)) {
      index += ptx::nctaid_x();
      continue;
    }
    if constexpr (design.has_indices) tiles.find_rows(rows, tile);
    tiles.keep(in_shared, index, tile);
    abi::Sm80Params own = tiles.params_of(tile);
    Sm80Windows windows{};
    if constexpr (design.scales.are_used()) windows.scales = &params.scales;
    Sm80Gemm<design> gemm(own, shared, nullptr, tiles.place_of(tile), rows, windows);
    UnitShares<abi::SplitMode::none> shares(own.split, own.k_blocks, 0);
    const TileShare share = shares.take();
    gemm.multiply_share(shares, share);
    const KeptGroupTile kept = tiles.read_again(in_shared);
    own = tiles.params_of(kept.tile);
    gemm.move_to(tiles.place_of(kept.tile));
    finish(gemm, share);  // has barriers: all have read the tile before the next one is kept
    index = kept.index + ptx::nctaid_x();
  }
  if constexpr (design.clears_outside)
    clear_outside_groups<abi::bytes_of(design.out)>(
        params, params.gemm.out,
        params.groups.ragged == abi::RaggedExtent::n ? params.gemm.m : params.gemm.n,
        static_cast<unsigned>(abi::thread_count(design)));
}

/// The kernel: threads and shared memory are those of gemm/sm80.cuh; any grid along x.
template <const abi::Sm80Design& design>
__device__ inline void sm80_grouped_gemm(const Sm80GroupParamsOf<design>& params) {
  for_each_grouped_sm80_tile<design, Sm80GroupTiles<design>>(
      params, [](Sm80Gemm<design>& gemm, const TileShare& share) { gemm.store(share); });
}

/// The same with an emitted epilogue.
template <const abi::Sm80Design& design, class Epilogue, class EpilogueParams>
__device__ inline void sm80_grouped_gemm(
    const abi::ProgramParams<Sm80GroupParamsOf<design>, EpilogueParams>& params) {
  for_each_grouped_sm80_tile<design, Sm80GroupTiles<design>>(
      params.gemm, [&](Sm80Gemm<design>& gemm, const TileShare& share) {
        gemm.template store<Epilogue>(share, params.epilogue);
      });
  store_reductions_of_nothing<Epilogue, typename ArithmeticOf<design.accumulator>::Compute>(
      params.gemm, params.epilogue, {.m = params.gemm.gemm.m, .n = params.gemm.gemm.n},
      {.own = threadIdx.x, .count = static_cast<unsigned>(abi::thread_count(design))});
}

}  // namespace gemmery::device
