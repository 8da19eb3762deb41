// SPDX-License-Identifier: Apache-2.0
// Grouped products on CUDA cores: the kernel of gemm/simt.cuh over the tiles of groups, whose loads
// and stores are clipped to their group. Blocks then clear elements of no group and store the
// reductions of empty groups.
#pragma once

#include <device/abi/groups.hpp>
#include <device/gemm/empty_groups.cuh>
#include <device/gemm/outside_groups.cuh>
#include <device/gemm/simt.cuh>
#include <device/schedule/grouped_tiles.cuh>
#include <device/schedule/labelled_tiles.cuh>

namespace gemmery::device {

/// The tile of this number among those of all groups. `extent` and `across` as in GroupScan.
template <class Params>
__device__ __forceinline__ GroupTile find_group_tile(const Params& params, unsigned extent,
                                                     unsigned across, unsigned tile) {
  if (params.groups.form == abi::GroupForm::labels)
    return find_labelled_tile(params.groups, extent, across, tile);
  return GroupScan(params.groups, extent, across).find(tile);
}
__device__ __forceinline__ GroupTile find_group_tile(const abi::SimtGroupTableParams& params,
                                                     unsigned, unsigned, unsigned tile) {
  return find_in_table(params.groups, params.table, tile);
}

/// Calls visit(gemm, tile, group) for the tiles of this block, in all groups. Stores are clipped to
/// the group. Then clears what is outside all groups, if the parameters ask for it.
template <const abi::SimtDesign& design, class Params, class Visit>
__device__ __forceinline__ void for_each_grouped_simt_tile(const Params& params, Visit&& visit) {
  static_assert(abi::find_fault(design) == abi::SimtFault::none,
                "find_fault names the field of the design to change");
  using Programs = typename ProgramsIn<Params>::Type;
  extern __shared__ __align__(16) char shared[];
  const abi::RaggedExtent ragged = params.groups.ragged;
  const unsigned rows = abi::tiles_along(params.gemm.m, design.tile_m);
  const unsigned columns = abi::tiles_along(params.gemm.n, design.tile_n);
  const bool is_of_n = ragged == abi::RaggedExtent::n;
  const bool has_labels = params.groups.form == abi::GroupForm::labels;
  const auto extent = static_cast<unsigned>(is_of_n ? design.tile_n : design.tile_m);
  const unsigned across = is_of_n                          ? rows
                          : ragged == abi::RaggedExtent::k ? rows * columns
                                                           : columns;
#pragma unroll 1
  for (unsigned index = blockIdx.x;; index += gridDim.x) {
    const GroupTile tile = find_group_tile(params, extent, across, index);
    if (!tile.is_found) break;
    if (has_labels && tile.begin == tile.end) continue;  // padding
    abi::SimtParams own = params.gemm;
    SimtOrigin origin{};
    abi::TilePosition position{.batch = tile.group, .row = 0, .column = 0};
    if (is_of_n) {
      origin.column = tile.begin;
      own.n = tile.end;
      position.row = tile.tile % rows;
      position.column = tile.tile / rows;
    } else {
      position.row = tile.tile / columns;
      position.column = tile.tile % columns;
      if (ragged == abi::RaggedExtent::m) {
        origin.row = tile.begin;
        own.m = tile.end;
      } else {
        origin.k = tile.begin;
        own.k = min(own.k, tile.end - tile.begin);  // 0 with alpha = 0
      }
    }
    SimtIndices indices{};
    if constexpr (design.indexed != abi::IndexedExtent::none)
      indices = {.gather = &params.gather, .scatter = &params.scatter};
    SimtCompanions companions{};
    if constexpr (design.a_companions.are_used() || design.b_companions.are_used())
      companions = {&params.a, &params.b};
    ProgramsParams<Programs> programs{};
    if constexpr (requires { params.program_a; }) programs = {&params.program_a, &params.program_b};
    SimtGemm<design, Programs> gemm(own, shared, origin, indices, {}, companions, programs);
    visit(gemm, position,
          abi::RegionGroup{.ragged = ragged,
                           .group = tile.group,
                           .begin = tile.begin,
                           .end = tile.end,
                           .m = params.gemm.m,
                           .n = params.gemm.n});
  }
  if (params.clears_outside != 0)
    clear_outside_groups<abi::bytes_of(design.out)>(
        params, params.gemm.out, is_of_n ? params.gemm.m : params.gemm.n,
        static_cast<unsigned>(abi::thread_count(design)));
}

/// The kernel of grouped products: as above, any grid of blocks along x. `Params`:
/// SimtGroupedParams, SimtScaledGroupParams with scales, SimtProgramGroupParams with programs, or
/// SimtIndexedParams if the design finds elements by indices.
template <const abi::SimtDesign& design, class Params>
__device__ inline void simt_grouped_gemm(const Params& params) {
  using Gemm = SimtGemm<design, typename ProgramsIn<Params>::Type>;
  for_each_grouped_simt_tile<design>(
      params, [](Gemm& gemm, const abi::TilePosition& tile, const abi::RegionGroup&) {
        gemm.compute_tile(tile);
      });
}

template <const abi::SimtDesign& design, class Epilogue, class Params, class EpilogueParams>
__device__ inline void simt_grouped_gemm(const abi::ProgramParams<Params, EpilogueParams>& params) {
  using Gemm = SimtGemm<design, typename ProgramsIn<Params>::Type>;
  for_each_grouped_simt_tile<design>(
      params.gemm, [&](Gemm& gemm, const abi::TilePosition& tile, const abi::RegionGroup& group) {
        gemm.template compute_tile<Epilogue>(tile, params.epilogue, group);
      });
  store_reductions_of_nothing<Epilogue, typename ArithmeticOf<design.accumulator>::Compute>(
      params.gemm, params.epilogue, {.m = params.gemm.gemm.m, .n = params.gemm.gemm.n},
      {.own = threadIdx.x, .count = static_cast<unsigned>(abi::thread_count(design))});
}

}  // namespace gemmery::device
