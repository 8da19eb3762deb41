// SPDX-License-Identifier: Apache-2.0
// The run-time parameters of an sm80 kernel, byte for byte as the host passes them.
#pragma once

#include <device/abi/fast_divisor.hpp>
#include <device/abi/host_device.hpp>
#include <device/abi/simt_params.hpp>
#include <device/abi/tile_order.hpp>

namespace gemmery::abi {

/// A batch of matrices one index of which is adjacent. Strides count elements.
struct Sm80Operand {
  const void* data;
  Int64 batch_stride;
  Int64 line_stride;  // of the other index
};

/// How the k blocks of tiles go to blocks of threads. A unit is a tile's slice, or in `stream` a
/// block's share of all k blocks.
struct SplitSchedule {
  unsigned units;       // of the launch, below 2^31
  unsigned slices;      // of a tile; 1 in `none`
  FastDivisor slice;    // divides a unit by `slices`
  unsigned per_unit;    // k blocks of a slice (the last one may have fewer), or of a stream's unit
  unsigned longer;      // units of a stream that have one k block more: the first ones
  unsigned whole;       // tiles that each unit of a stream takes by itself before the others
  FastDivisor k_block;  // divides by the k blocks of a tile, in `stream`
  UInt64 partials;      // bytes from the workspace's begin to the accumulators; counters lie first
};

/// out[l] = alpha * a[l] b[l] + beta * c[l], a (m, k), b (k, n), c and out (m, n).
struct Sm80Params {
  Sm80Operand a;
  Sm80Operand b;
  SimtMatrix c;
  SimtMatrix out;
  double alpha;
  double beta;
  unsigned m;
  unsigned n;
  unsigned k;
  unsigned k_blocks;  // of a tile
  TileOrder order;
  SplitSchedule split;
  void* workspace;
};

static_assert(sizeof(Sm80Operand) == 24);

}  // namespace gemmery::abi
