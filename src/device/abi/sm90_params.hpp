// SPDX-License-Identifier: Apache-2.0
// The run-time parameters of an sm90 kernel, byte for byte as the host passes them.
#pragma once

#include <device/abi/host_device.hpp>
#include <device/abi/split.hpp>
#include <device/abi/tile_order.hpp>

namespace gemmery::abi {

/// What the driver encoded; the hardware alone reads it.
struct alignas(64) TensorMap {
  UInt64 words[16];
};

/// A batch of matrices; strides count elements. `column_stride` is 1 but in designs that take any.
struct RowMajorMatrix {
  const void* data;
  Int64 batch_stride;
  Int64 row_stride;
  Int64 column_stride;
};

/// out[l] = alpha * a[l] b[l] + beta * c[l]. The maps' coordinates are (adjacent index, the other,
/// batch, or the two of abi/pointer_array.hpp). Where there is no k, one block of it is multiplied
/// that lies beyond the maps of A and B, hence is all zeros: sums that are set without wgmma cost
/// registers (128x256 spilled 432 bytes).
struct Sm90Params {
  TensorMap a;
  TensorMap b;
  TensorMap out;
  RowMajorMatrix c;
  RowMajorMatrix out_rows;  // what the map of out shows, or out that threads store
  float alpha;
  float beta;
  unsigned m;
  unsigned n;
  unsigned k_blocks;      // of each share of k, at least 1; the last ones may lie beyond the maps
  int first_k;            // coordinate of the first block: 0, or beyond the maps
  TileOrder order;        // of tiles of a whole cluster
  unsigned a_batch_step;  // 0 where all batches share one matrix
  unsigned b_batch_step;
  // What the copies of one stage bring: whole tiles, or all rows that a smaller operand has. Copies
  // fill rows beyond a map with zeros more slowly than they bring others: 16x4096x4096 of tiles of
  // 64x64 in two shares took 15.1 us, 1x4096x4096 18.0 (H200, 2026-11-22).
  unsigned a_bytes;
  unsigned b_bytes;
  // Staging tiles that begin behind this column are stored element by element: TMA writes whole
  // units of 16 bytes, also where a row of out ends within one (H200, 2026-11-21). n less a staging
  // tile's columns then, which may be negative, otherwise behind all columns.
  int last_whole_staging;
  // Whether the next launch may take its places while this one ends. With blocks for some of the
  // multiprocessors only it would get the neighbours of those at work, which share their path to
  // memory: 128x4096x14336 in 74 blocks took 48.0 us for 44.8 (H200, 2026-11-21).
  unsigned lets_next_begin;
  // Where blocks share the k of tiles through the workspace.
  SplitSchedule split;
  void* workspace;
  double wide_alpha;  // the same numbers for accumulators of int32
  double wide_beta;
  // Where A's and B's matrices lie anywhere, the arrays of their addresses; else null.
  void* const* a_array;
  void* const* b_array;
};

static_assert(sizeof(TensorMap) == 128);
static_assert(sizeof(Sm90Params) == 3 * 128 + 256);

}  // namespace gemmery::abi
