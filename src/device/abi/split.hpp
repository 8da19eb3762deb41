// SPDX-License-Identifier: Apache-2.0
// How blocks share the k of one tile through the workspace, and which k blocks go to which of them.
#pragma once

#include <device/abi/fast_divisor.hpp>
#include <device/abi/host_device.hpp>

namespace gemmery::abi {

/// `serial`: slices add to a tile in workspace one after the other; `parallel`: each leaves its
/// accumulators there, and the last to arrive adds them up in the order of the slices; `stream`: of
/// the tiles that do not fill the device once more, and as many again, every block gets the same
/// number of k blocks, and parts of a tile meet as in `parallel`. All three give the same bits each
/// time.
enum class SplitMode : unsigned char { none, serial, parallel, stream };

/// A unit is a tile's slice, those of slice 0 first, or in `stream` a block's share of all k
/// blocks. Where the blocks of a cluster share operands, a tile is that of the cluster.
struct SplitSchedule {
  unsigned units;       // of the launch, below 2^31
  unsigned slices;      // of a tile; 1 in `none`
  FastDivisor slice;    // divides `units` by `slices`
  unsigned per_unit;    // k blocks of a slice (the last one may have fewer), or of a stream's unit
  unsigned longer;      // units of a stream that have one k block more: the first ones
  unsigned whole;       // tiles that each unit of a stream takes by itself before the others
  FastDivisor k_block;  // divides by the k blocks of a tile, in `stream`
  UInt64 partials;      // bytes from the workspace's begin to the accumulators; counters lie first
};

}  // namespace gemmery::abi
