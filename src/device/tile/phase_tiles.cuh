// SPDX-License-Identifier: Apache-2.0
// The tiles of a dgrad with a stride. A tile belongs to a phase; the phase's windows and rows of
// out are in shared memory while the tile is computed.
#pragma once

#include <device/abi/conv_phases.hpp>
#include <device/abi/window_params.hpp>
#include <device/ptx/warp.cuh>
#include <device/tile/indexed_element.cuh>

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
template <class Params>
__device__ __forceinline__ void keep_phase(KeptPhase& kept, const Params& params, unsigned phase) {
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
    // Nothing is divided by the taps along depth, nor if a phase has no taps.
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

/// All threads of a block call it for each of its tiles. It finds the phase of a row of tiles, and
/// the row of out for each of the tile's rows. Returns the tile's first row in the phase.
template <int tile_m, int threads, class Params>
__device__ __forceinline__ unsigned find_phase_tile(const Params& params, unsigned tile_row,
                                                    KeptPhase& kept, int* rows) {
  const abi::PhaseParams& phases = params.phases;
  const unsigned phase = phases.tile_rows.divide(tile_row);
  const unsigned first =
      (tile_row - phase * phases.tile_rows.divisor) * static_cast<unsigned>(tile_m);
  __syncthreads();  // waits until the previous tile is stored
  if (ptx::tid_x() == 0) keep_phase(kept, params, phase);
  __syncthreads();  // waits for the phase
#pragma unroll 1
  for (unsigned row = ptx::tid_x(); row < tile_m; row += threads)
    rows[row] = first + row < kept.rows ? static_cast<int>(row_of_out(kept, phases, first + row))
                                        : no_element;
  __syncthreads();  // waits for the rows
  return first;
}

}  // namespace gemmery::device
