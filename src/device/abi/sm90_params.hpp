// SPDX-License-Identifier: Apache-2.0
// The run-time parameters of an sm90 kernel, byte for byte as the host passes them.
#pragma once

#include <device/abi/companions.hpp>
#include <device/abi/groups.hpp>
#include <device/abi/host_device.hpp>
#include <device/abi/problem_list.hpp>
#include <device/abi/split.hpp>
#include <device/abi/tile_order.hpp>

namespace gemmery::abi {

/// A tensor map as the driver encodes it; only the hardware reads it.
struct alignas(64) TensorMap {
  UInt64 words[16];
};

/// A batch of matrices; strides count elements. `column_stride` is 1 except in designs for any
/// strides.
struct RowMajorMatrix {
  const void* data;
  Int64 batch_stride;
  Int64 row_stride;
  Int64 column_stride;
};

/// out[l] = alpha * a[l] b[l] + beta * c[l]. The coordinates of the maps are (adjacent index, other
/// index, batch), or the two of abi/pointer_array.hpp in place of the batch. If K is 0, one block
/// of k is multiplied that lies beyond the maps of A and B and is therefore all zeros: accumulators
/// that are set without a wgmma cost registers (128x256 spilled 432 bytes).
struct Sm90Params {
  TensorMap a;
  TensorMap b;
  TensorMap out;
  RowMajorMatrix c;
  RowMajorMatrix out_rows;  // the matrix of the map of out, or the out that threads store
  float alpha;
  float beta;
  unsigned m;
  unsigned n;
  unsigned k_blocks;      // of each share of k, at least 1; the last ones may lie beyond the maps
  int first_k;            // coordinate of the first block: 0, or beyond the maps if K is 0
  TileOrder order;        // of tiles of a whole cluster
  unsigned a_batch_step;  // 0 if all batches share one matrix
  unsigned b_batch_step;
  // Bytes that the copies of one stage load: whole tiles, or all rows of an operand that is smaller
  // than its tile. Copies that fill rows beyond a map with zeros are slower than copies of data:
  // 16x4096x4096 in tiles of 64x64 in two shares took 15.1 us, 1x4096x4096 18.0 (H200, 2026-11-22).
  unsigned a_bytes;
  unsigned b_bytes;
  // Staging tiles that begin after this column are stored element by element: TMA writes whole
  // units of 16 bytes, even if a row of out ends within one (H200, 2026-11-21). It is then n minus
  // the columns of a staging tile, which may be negative; otherwise it is beyond all columns.
  int last_whole_staging;
  // True if the dependent launch may start while this one ends. Not if this launch uses only some
  // of the multiprocessors: the blocks of the next one would run on neighbours of the busy ones,
  // which share their path to memory. 128x4096x14336 in 74 blocks took 48.0 us instead of 44.8
  // (H200, 2026-11-21).
  unsigned lets_next_begin;
  // For splits of k through the workspace.
  SplitSchedule split;
  void* workspace;
  double wide_alpha;  // the same numbers for accumulators of int32
  double wide_beta;
  // For batches by pointers, the arrays of addresses of A's and B's matrices; else null.
  void* const* a_array;
  void* const* b_array;
};

/// `gemm` has the extents of all groups together; its tile order is unused.
struct Sm90GroupedParams {
  Sm90Params gemm;
  GroupParams groups;
  unsigned out_batch_step;  // 0 if all groups share one matrix of out
};

/// The same with a table of groups from the host; `groups` are without sizes.
struct Sm90GroupTableParams {
  Sm90GroupedParams grouped;
  GroupTable table;
};

/// The same with an index of out for each row of all groups.
struct Sm90ScatterParams {
  Sm90GroupedParams grouped;
  IndexParams scatter;
};

/// The same with an index of A for each row of all groups. The index of out is unused without a
/// scatter.
struct Sm90GatherParams {
  Sm90ScatterParams scattered;
  IndexParams gather;
  RowMajorMatrix a;
  unsigned k;  // 0 with alpha = 0
};

/// Scales of A's rows and of B's columns, and zero points of A's rows, as the kernel sees them.
struct Sm90Scales {
  CompanionParams rows[2];
  CompanionParams columns[2];
  CompanionParams row_zeros;
  unsigned k;  // of A and B; 0 with alpha = 0
};

struct Sm90ScaledParams {
  Sm90Params gemm;
  Sm90Scales scales;
};
struct Sm90ScaledGroupParams {
  Sm90GroupedParams grouped;
  Sm90Scales scales;
};

/// A list of problems: ProblemList, or ProblemListWithC; and the maps of the matrices of each, by
/// which TMA reads them where they are: 20 KB, which kernels of sm_70 and later take (CUDA C++
/// programming guide, __global__ function parameters: 32,764 bytes). Of `gemm` what all problems
/// have alike.
template <class List>
struct Sm90ListParams {
  Sm90Params gemm;
  List list;
  TensorMap a[List::most];
  TensorMap b[List::most];
};

static_assert(sizeof(TensorMap) == 128);
static_assert(sizeof(Sm90Params) == 3 * 128 + 256);

}  // namespace gemmery::abi
