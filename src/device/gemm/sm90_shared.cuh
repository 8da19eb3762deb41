// SPDX-License-Identifier: Apache-2.0
// The shared memory of an sm90 block; the memory of an emitted epilogue follows it.
#pragma once

#include <device/abi/sm90_shared.hpp>
#include <device/gemm/sm90_group_tiles.cuh>
#include <device/pipeline/split_sums.cuh>
#include <device/pipeline/stage_ring.cuh>
#include <device/pipeline/warpgroup_parts.cuh>

namespace gemmery::device {

template <const abi::Sm90Design& design>
struct Sm90Shared {
  static constexpr int staging_tiles =
      abi::consumer_count(design) * abi::staging_tiles_per_consumer;
  alignas(1024) char a[design.stages][abi::a_stage_bytes(design)];
  alignas(1024) char b[design.stages][abi::b_stage_bytes(design)];
  alignas(1024) char staging[staging_tiles][abi::staging_bytes(design)];
  StageBarriers<design.stages> barriers;
  SplitSumsShared<design> split_sums;
  WarpgroupPartsShared<design> parts;
  GroupTilesShared<design> group_tiles;
  GatheredRowsShared<design> gathered;
};

/// The pipeline of its stages.
template <const abi::Sm90Design& design>
using Sm90Ring = StageRing<design.stages, abi::sharing_blocks(design)>;

}  // namespace gemmery::device
