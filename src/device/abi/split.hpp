// SPDX-License-Identifier: Apache-2.0
// How blocks split the k of a tile through the workspace, and the k blocks that each of them gets.
#pragma once

#include <device/abi/fast_divisor.hpp>
#include <device/abi/host_device.hpp>

namespace gemmery::abi {

/// `serial`: slices add to a tile in the workspace one after the other. `parallel`: each slice
/// stores its accumulators there, and the last to arrive adds them in the order of the slices.
/// `stream` (stream-K): every block gets the same number of k blocks of the tiles that do not fill
/// a whole wave and of one more wave; parts of a tile are added as in `parallel`. All three give
/// the same bits in every run.
enum class SplitMode : unsigned char { none, serial, parallel, stream };

/// A unit is one slice of a tile (those of slice 0 come first) or, in `stream`, a block's share of
/// all k blocks. If the blocks of a cluster share operands, a tile is a tile of the cluster.
struct SplitSchedule {
  unsigned units;       // of the launch, below 2^31
  unsigned slices;      // of a tile; 1 in `none`
  FastDivisor slice;    // divides `units` by `slices`
  unsigned per_unit;    // k blocks of a slice (the last one may have fewer), or of a stream's unit
  unsigned longer;      // the first units of a stream, which have one k block more
  unsigned whole;       // whole tiles that each unit of a stream multiplies first
  FastDivisor k_block;  // divides by the k blocks of a tile, in `stream`
  UInt64 partials;      // offset of the accumulators in the workspace, in bytes, after the counters
};

}  // namespace gemmery::abi
