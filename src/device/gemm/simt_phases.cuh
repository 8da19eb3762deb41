// SPDX-License-Identifier: Apache-2.0
// dgrad with a stride on CUDA cores: the kernel of gemm/simt.cuh over the tiles of all phases.
//
//   a tile's number
//     | tile/phase_tiles, abi/conv_phases: its phase: the pixels of dx, the taps, and the
//     | positions in dy that they read
//   windows of the phase, and rows of out, in shared memory
//     | SimtGemm, as for a stride of 1; for a phase without taps, the epilogue of 0
//   the phase's pixels of dx
#pragma once

#include <device/gemm/simt.cuh>
#include <device/tile/phase_tiles.cuh>

namespace gemmery::device {

/// Calls visit(gemm, tile) for the tiles of this block, in all phases.
template <const abi::SimtDesign& design, class Visit>
__device__ __forceinline__ void for_each_phased_simt_tile(const abi::SimtPhaseParams& params,
                                                          Visit&& visit) {
  static_assert(abi::find_fault(design) == abi::SimtFault::none,
                "find_fault names the field of the design to change");
  extern __shared__ __align__(16) char shared[];
  auto& kept = *reinterpret_cast<KeptPhase*>(shared + abi::phase_offset(design));
  int* const rows =
      reinterpret_cast<int*>(shared + abi::phase_offset(design) + abi::kept_phase_bytes);
  const abi::SimtParams& gemm_params = params.conv.gemm;
#pragma unroll 1
  for (unsigned batch = blockIdx.y; batch < gemm_params.batches; batch += gridDim.y) {
#pragma unroll 1
    for (unsigned index = blockIdx.x; index < gemm_params.order.tiles; index += gridDim.x) {
      abi::TilePosition tile =
          abi::position_in_matrix<abi::simt_raster>(gemm_params.order, batch, index);
      const unsigned first_row =
          find_phase_tile<design.tile_m, abi::thread_count(design)>(params, tile.row, kept, rows);
      if (first_row >= kept.rows) continue;
      tile.row = first_row / static_cast<unsigned>(design.tile_m);
      abi::SimtParams own = gemm_params;
      own.m = kept.rows;
      own.k = kept.k;
      SimtGemm<design> gemm(own, shared, {},
                            {.gather = nullptr, .scatter = nullptr, .rows_of_out = rows},
                            {&kept.a, &kept.b});
      visit(gemm, tile);
    }
  }
}

/// The kernel: threads, shared memory and grid are those of gemm/simt.cuh.
template <const abi::SimtDesign& design>
__device__ inline void simt_phase_gemm(const abi::SimtPhaseParams& params) {
  for_each_phased_simt_tile<design>(
      params,
      [](SimtGemm<design>& gemm, const abi::TilePosition& tile) { gemm.compute_tile(tile); });
}

/// The same with an emitted epilogue.
template <const abi::SimtDesign& design, class Epilogue, class EpilogueParams>
__device__ inline void simt_phase_gemm(
    const abi::ProgramParams<abi::SimtPhaseParams, EpilogueParams>& params) {
  for_each_phased_simt_tile<design>(
      params.gemm, [&](SimtGemm<design>& gemm, const abi::TilePosition& tile) {
        gemm.template compute_tile<Epilogue>(tile, params.epilogue, abi::RegionGroup{});
      });
}

}  // namespace gemmery::device
