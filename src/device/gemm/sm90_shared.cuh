// SPDX-License-Identifier: Apache-2.0
// The shared memory of an sm90 block; the memory of an emitted epilogue follows it.
#pragma once

#include <device/abi/sm90_shared.hpp>
#include <device/gemm/sm90_phases.cuh>
#include <device/pipeline/stage_ring.cuh>

namespace gemmery::device {

/// In place of a phase's memory that a design lacks, like Nothing. Types of their own, all empty,
/// share an address with other members and take no bytes.
template <int which>
struct Absent {};

template <const abi::Sm90Design& design>
struct Sm90Shared {
  static constexpr int staging_tiles =
      abi::consumer_count(design) * abi::staging_tiles_per_consumer;
  alignas(1024) char a[design.stages][abi::a_stage_bytes(design)];
  alignas(1024) char b[design.stages][abi::b_stage_bytes(design)];
  alignas(1024) char staging[staging_tiles][abi::staging_bytes(design)];
  StageBarriers<design.stages> barriers;
  [[no_unique_address]]
  typename PhaseIf<(design.split_k > 1), SplitSumsShared<design>>::Type split_sums;
  [[no_unique_address]] typename PhaseIf<design.split != abi::SplitMode::none,
                                         WarpgroupPartsShared<design>, Absent<1>>::Type parts;
  [[no_unique_address]]
  typename PhaseIf<design.has_groups, GroupTilesShared<design>, Absent<2>>::Type group_tiles;
  [[no_unique_address]]
  typename PhaseIf<design.gathers_rows, GatheredRowsShared<design>, Absent<3>>::Type gathered;
  [[no_unique_address]]
  typename PhaseIf<abi::has_scales(design), StageScalesShared<design>, Absent<4>>::Type scales;
};

/// The pipeline of its stages.
template <const abi::Sm90Design& design>
using Sm90Ring = StageRing<design.stages, abi::sharing_blocks(design)>;

}  // namespace gemmery::device
