// SPDX-License-Identifier: Apache-2.0
// dgrad with a stride by mma.sync: the kernel of gemm/sm80.cuh over the tiles of all phases.
//
//   a tile's number
//     | abi/conv_phases: its phase: which pixels of dx, which taps, where they meet dy
//   windows of the phase, and rows of out, in shared memory
//     | Sm80Gemm, as at a stride of 1; without taps: the epilogue of 0
//   the phase's pixels of dx
#pragma once

#include <device/abi/conv_phases.hpp>
#include <device/abi/simt_design.hpp>
#include <device/gemm/sm80.cuh>

namespace gemmery::device {

/// A tile's phase, in shared memory.
struct KeptPhase {
  abi::WindowParams a;
  abi::WindowParams b;
  unsigned rows;
  unsigned k;
  unsigned first[3];
};
static_assert(sizeof(KeptPhase) <= abi::kept_phase_bytes);

/// Called by one thread. `phase`: counted along width first.
__device__ __forceinline__ void keep_phase(KeptPhase& kept, const abi::Sm80PhaseParams& params,
                                           unsigned phase) {
  const abi::PhaseParams& phases = params.phases;
  kept.a = params.conv.a;
  kept.b = params.conv.b;
  unsigned taps = 1;
  unsigned pixels = phases.images;
#pragma unroll 1
  for (int d = 2; d >= 0; --d) {
    const abi::PhaseDimension& along = phases.along[d];
    const unsigned above = along.most.divide(phase);
    const abi::Phase found = abi::find_phase(along, phase - above * along.most.divisor);
    phase = above;
    taps *= found.taps;
    pixels *= found.pixels;
    kept.first[d] = found.first;
    kept.a.pixels[d] = abi::divisor_of(along.pixels, found.pixels);
    kept.a.origin[d] = found.origin;
    kept.a.tap_step[d] = -static_cast<int>(along.common.divide(along.dilation));
    const auto tap = static_cast<int>(found.tap);
    const auto step = static_cast<int>(along.tap_step.divisor);
    kept.b.origin[d] = phases.is_reversed != 0 ? static_cast<int>(along.filter) - 1 - tap : tap;
    kept.b.tap_step[d] = phases.is_reversed != 0 ? -step : step;
    // Nothing divides by the taps along depth, nor by none.
    if (d > 0) kept.a.taps[d - 1] = abi::divisor_of(along.taps, found.taps);
    if (d > 0) kept.b.taps[d - 1] = kept.a.taps[d - 1];
  }
  kept.rows = pixels;
  kept.k = params.conv.gemm.k > 0 ? taps * phases.filters : 0;  // alpha = 0 multiplies nothing
}

/// The row of dx for a row of the phase.
__device__ __forceinline__ unsigned row_of_out(const KeptPhase& kept,
                                               const abi::PhaseParams& phases, unsigned row) {
  unsigned pixel = 0;
  unsigned scale = 1;
#pragma unroll 1
  for (int d = 2; d >= 0; --d) {
    const abi::PhaseDimension& along = phases.along[d];
    const unsigned rest = kept.a.pixels[d].divide(row);
    const unsigned here = row - rest * kept.a.pixels[d].divisor;
    pixel += (here * along.stride.divisor + kept.first[d]) * scale;
    scale *= along.extent;
    row = rest;
  }
  return pixel + row * scale;
}

/// Calls finish(gemm, share) for every tile of this block, in all phases.
template <abi::Sm80Design design, class Finish>
__device__ __forceinline__ void for_each_phased_sm80_tile(const abi::Sm80PhaseParams& params,
                                                          Finish&& finish) {
  static_assert(abi::find_fault(design) == abi::Sm80Fault::none,
                "find_fault names the field of the design to change");
  extern __shared__ __align__(128) char shared[];
  auto& kept = *reinterpret_cast<KeptPhase*>(shared + abi::kept_phase_offset(design));
  int* const rows =
      reinterpret_cast<int*>(shared + abi::kept_phase_offset(design) + abi::kept_phase_bytes);
  const abi::PhaseParams& phases = params.phases;
#pragma unroll 1
  for (unsigned unit = blockIdx.x; unit < params.conv.gemm.split.units;
       unit += block_count<design>()) {
    const abi::TilePosition position =
        abi::position_of<design.raster>(params.conv.gemm.order, unit);
    const unsigned phase = phases.tile_rows.divide(position.row);
    const unsigned first_row =
        (position.row - phase * phases.tile_rows.divisor) * static_cast<unsigned>(design.tile_m);
    __syncthreads();  // waits until the tile before is stored
    if (ptx::tid_x() == 0) keep_phase(kept, params, phase);
    __syncthreads();  // waits for the phase
    if (first_row >= kept.rows) continue;
#pragma unroll 1
    for (unsigned row = ptx::tid_x(); row < design.tile_m; row += abi::thread_count(design))
      rows[row] = first_row + row < kept.rows
                      ? static_cast<int>(row_of_out(kept, phases, first_row + row))
                      : no_element;
    __syncthreads();  // waits for the rows
    abi::Sm80Params own = params.conv.gemm;
    own.m = kept.rows;
    own.k = kept.k;
    own.k_blocks = abi::tiles_along(own.k, design.tile_k);
    const GroupedTilePlace place{
        .corner = {.batch = position.batch,
                   .row = first_row,
                   .column = position.column * static_cast<unsigned>(design.tile_n)},
        .first_k = 0,
        .group = {}};
    Sm80Gemm<design> gemm(own, shared, nullptr, place, {.of_a = nullptr, .of_out = rows},
                          {&kept.a, &kept.b});
    UnitShares<abi::SplitMode::none> shares(own.split, own.k_blocks, 0);
    const TileShare share = shares.take();
    gemm.multiply_share(shares, share);
    finish(gemm, share);
  }
}

/// The kernel: threads and shared memory as gemm/sm80.cuh has them, any grid along x.
template <abi::Sm80Design design>
__device__ inline void sm80_phase_gemm(const abi::Sm80PhaseParams& params) {
  for_each_phased_sm80_tile<design>(
      params, [](Sm80Gemm<design>& gemm, const TileShare& share) { gemm.store(share); });
}

/// The same with an emitted epilogue.
template <abi::Sm80Design design, class Epilogue, class EpilogueParams>
__device__ inline void sm80_phase_gemm(
    const abi::ProgramParams<abi::Sm80PhaseParams, EpilogueParams>& params) {
  for_each_phased_sm80_tile<design>(params.gemm,
                                    [&](Sm80Gemm<design>& gemm, const TileShare& share) {
                                      gemm.template store<Epilogue>(share, params.epilogue);
                                    });
}

}  // namespace gemmery::device
