// SPDX-License-Identifier: Apache-2.0
// dgrad with a stride by mma.sync: the kernel of gemm/sm80.cuh over the tiles of all phases.
//
//   a tile's number
//     | tile/phase_tiles, abi/conv_phases: its phase: the pixels of dx, the taps, and the
//     | positions in dy that they read
//   windows of the phase, and rows of out, in shared memory
//     | Sm80Gemm, as for a stride of 1; for a phase without taps, the epilogue of 0
//   the phase's pixels of dx
#pragma once

#include <device/abi/simt_design.hpp>
#include <device/abi/sm80_faults.hpp>
#include <device/gemm/sm80.cuh>
#include <device/tile/phase_tiles.cuh>

namespace gemmery::device {

/// Calls finish(gemm, share) for every tile of this block, in all phases; if `visits_all`, for
/// tiles beyond the last row of a phase, too, which have no row of out: they have parts of
/// reductions.
template <const abi::Sm80Design& design, bool visits_all, class Finish>
__device__ __forceinline__ void for_each_phased_sm80_tile(const abi::Sm80PhaseParams& params,
                                                          Finish&& finish) {
  static_assert(abi::find_fault(design) == abi::Sm80Fault::none,
                "find_fault names the field of the design to change");
  extern __shared__ __align__(128) char shared[];
  auto& kept = *reinterpret_cast<KeptPhase*>(shared + abi::kept_phase_offset(design));
  int* const rows =
      reinterpret_cast<int*>(shared + abi::kept_phase_offset(design) + abi::kept_phase_bytes);
#pragma unroll 1
  for (unsigned unit = blockIdx.x; unit < params.conv.gemm.split.units;
       unit += block_count<design>()) {
    const abi::TilePosition position =
        abi::position_of<design.raster>(params.conv.gemm.order, unit);
    const unsigned first_row =
        find_phase_tile<design.tile_m, abi::thread_count(design)>(params, position.row, kept, rows);
    const bool is_beyond = first_row >= kept.rows;
    if (!visits_all && is_beyond) continue;
    abi::Sm80Params own = params.conv.gemm;
    own.m = kept.rows;
    own.k = visits_all && is_beyond ? 0 : kept.k;
    own.k_blocks = abi::tiles_along(own.k, design.tile_k);
    const GroupedTilePlace place{
        .corner = {.batch = position.batch,
                   .row = first_row,
                   .column = position.column * static_cast<unsigned>(design.tile_n)},
        .first_k = 0,
        // For reductions: the tile's start if the tiles of all phases are counted.
        .group = {.ragged = abi::RaggedExtent::m,
                  .group = 0,
                  .begin = position.row * static_cast<unsigned>(design.tile_m),
                  .end = 0,
                  .m = 0,
                  .n = 0}};
    Sm80Gemm<design> gemm(own, shared, nullptr, place, {.of_a = nullptr, .of_out = rows},
                          {&kept.a, &kept.b});
    UnitShares<abi::SplitMode::none> shares(own.split, own.k_blocks, 0);
    const TileShare share = shares.take();
    gemm.multiply_share(shares, share);
    finish(gemm, share);
  }
}

/// The kernel: threads and shared memory are those of gemm/sm80.cuh; any grid along x.
template <const abi::Sm80Design& design>
__device__ inline void sm80_phase_gemm(const abi::Sm80PhaseParams& params) {
  for_each_phased_sm80_tile<design, false>(
      params, [](Sm80Gemm<design>& gemm, const TileShare& share) { gemm.store(share); });
}

/// The same with an emitted epilogue.
template <const abi::Sm80Design& design, class Epilogue, class EpilogueParams>
__device__ inline void sm80_phase_gemm(
    const abi::ProgramParams<abi::Sm80PhaseParams, EpilogueParams>& params) {
  for_each_phased_sm80_tile<design, has_reductions<Epilogue>()>(
      params.gemm, [&](Sm80Gemm<design>& gemm, const TileShare& share) {
        gemm.template store<Epilogue>(share, params.epilogue);
      });
}

}  // namespace gemmery::device
