// SPDX-License-Identifier: Apache-2.0
// The place of a warpgroup's tile in out, and functions shared by all code that finishes such
// tiles: the prefetch of operands, and the swizzle of staging tiles.
#pragma once

#include <device/abi/group_regions.hpp>
#include <device/abi/sm90_conv_params.hpp>
#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/copy/conv_operand.cuh>
#include <device/ptx/loops.cuh>

namespace gemmery::device {

/// Where a tile begins in out.
struct OutputPlace {
  unsigned row;
  unsigned column;
  unsigned batch;
  unsigned row_end;  // of the tile's group; this and the following are set in grouped kernels only
  unsigned column_end;
  unsigned group_begin;  // along the extent that differs
};

/// The parameters of a convolution, which begin with `params`.
__device__ __forceinline__ const abi::Sm90ConvParams& with_windows(const abi::Sm90Params& params) {
  return reinterpret_cast<const abi::Sm90ConvParams&>(params);
}
__device__ __forceinline__ const abi::Sm90PhaseParams& with_phases(const abi::Sm90Params& params) {
  return reinterpret_cast<const abi::Sm90PhaseParams&>(params);
}

/// The ends of rows and columns: those of out, of a phase of its pixels, or of a tile's group.
template <const abi::Sm90Design& design>
__device__ __forceinline__ unsigned row_end(const abi::Sm90Params& params,
                                            const OutputPlace& place) {
  if constexpr (design.has_groups) return place.row_end;
  if constexpr (design.has_phases) return with_phases(params).phases[place.batch].rows;
  return params.m;
}
/// A row of out's matrix by its number in a phase.
template <const abi::Sm90Design& design>
__device__ __forceinline__ unsigned matrix_row(const abi::DgradPhase& phase, unsigned row) {
  const auto pixel = count_pixels<design.dimensions>(phase.window, row);
  unsigned found = phase.first_row + static_cast<unsigned>(pixel.image) * phase.image_rows;
#pragma unroll
  for (int d = 2; d > 2 - design.dimensions; --d)
    found += static_cast<unsigned>(pixel.at[2 - d]) * phase.row_step[d];
  return found;
}

template <const abi::Sm90Design& design>
__device__ __forceinline__ unsigned column_end(const abi::Sm90Params& params,
                                               const OutputPlace& place) {
  if constexpr (design.has_groups) return place.column_end;
  return params.n;
}

/// The parameters of a grouped kernel, which begin with `params`.
__device__ __forceinline__ const abi::Sm90GroupedParams& with_groups(
    const abi::Sm90Params& params) {
  return reinterpret_cast<const abi::Sm90GroupedParams&>(params);
}
__device__ __forceinline__ const abi::GroupTable& table_of(const abi::Sm90Params& params) {
  return reinterpret_cast<const abi::Sm90GroupTableParams&>(params).table;
}

/// The group of a tile.
__device__ __forceinline__ abi::RegionGroup group_of(const abi::Sm90Params& params,
                                                     const OutputPlace& place) {
  const abi::RaggedExtent ragged = with_groups(params).groups.ragged;
  return {.ragged = ragged,
          .group = place.batch,
          .begin = place.group_begin,
          .end = ragged == abi::RaggedExtent::n ? place.column_end : place.row_end,
          .m = params.m,
          .n = params.n};
}

__device__ __forceinline__ const abi::IndexParams& scatter_of(const abi::Sm90Params& params) {
  return reinterpret_cast<const abi::Sm90ScatterParams&>(params).scatter;
}

/// Prefetches a share of a matrix into L2 during the mainloop, for the reads of the epilogue.
/// `first`: the share's first element; a row has `row_bytes` of it, of which `bytes_left` exist,
/// and `rows_left` rows exist. All threads of a warpgroup call it. A thread prefetches the same
/// line of every n-th row.
template <int rows, int row_bytes>
__device__ __forceinline__ void prefetch_share(const char* first, abi::Int64 step_bytes,
                                               unsigned rows_left, abi::Int64 bytes_left,
                                               unsigned thread) {
  constexpr unsigned line_bytes = 128;
  constexpr unsigned lines = (row_bytes + line_bytes - 1) / line_bytes;
  constexpr unsigned rows_at_once = abi::warpgroup_threads / lines;
  const unsigned byte = thread % lines * line_bytes;
  const unsigned row = thread / lines;
  if (row >= rows_at_once || byte >= bytes_left) return;
  ptx::prefetch_lines<rows_at_once>(first + row * step_bytes + byte, rows_at_once * step_bytes, row,
                                    min(rows_left, unsigned{rows}));
}

/// The offset of a 16-byte chunk in a row of a staging tile, in TMA's swizzle for this pitch.
template <unsigned pitch>
__device__ __forceinline__ unsigned swizzled_chunk(unsigned row, unsigned chunk) {
  constexpr unsigned mask = pitch / 16 - 1;
  constexpr unsigned row_shift = pitch == 128 ? 0 : pitch == 64 ? 1 : 2;
  return row * pitch + ((chunk ^ (row >> row_shift & mask)) << 4);
}

}  // namespace gemmery::device
