// SPDX-License-Identifier: Apache-2.0
// Declares the phases that only some sm90 kernels have. Each is defined in a header of its own,
// which the source of a kernel includes if its design needs the phase: a plain kernel compiles a
// twentieth faster without them. A kernel whose source lacks one does not compile.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/abi/sm90_shared.hpp>
#include <device/pipeline/stage_ring.cuh>

namespace gemmery::device {

/// `Needed` if `is_needed`, otherwise `Other`, which is empty by default.
struct Nothing {};
template <bool is_needed, class Needed, class Other = Nothing>
struct PhaseIf {
  using Type = Needed;
};
template <class Needed, class Other>
struct PhaseIf<false, Needed, Other> {
  using Type = Other;
};

// gemm/sm90_group_tiles.cuh, sm90_listed_tiles.cuh, sm90_group_tail.cuh, sm90_outside.cuh
template <const abi::Sm90Design& design>
struct GroupTilesShared;
template <const abi::Sm90Design& design>
class FoundGroupTiles;
template <const abi::Sm90Design& design>
class ListedTiles;
template <const abi::Sm90Design& design>
class GroupTileSender;
template <const abi::Sm90Design& design>
class ReceivedGroupTiles;
template <const abi::Sm90Design& design>
class Sm90GroupTail;
template <const abi::Sm90Design& design>
__device__ __forceinline__ void clear_outside_of_tiles(const abi::Sm90Params& params);
using GroupTileRing = StageRing<abi::group_tile_records, 1>;

// gemm/sm90_gather.cuh, sm90_rounding.cuh
template <const abi::Sm90Design& design>
struct GatheredRowsShared;
template <const abi::Sm90Design& design>
class Sm90Gather;
template <const abi::Sm90Design& design>
class Sm90Rounding;

// gemm/sm90_scales.cuh
template <const abi::Sm90Design& design>
struct StageScalesShared;
template <const abi::Sm90Design& design>
class Sm90ScaleLoad;
template <const abi::Sm90Design& design>
class Sm90ScaledSums;

// schedule/persistent_shares.cuh, pipeline/warpgroup_parts.cuh, pipeline/register_parts.cuh,
// pipeline/value_parts.cuh, pipeline/split_sums.cuh
template <abi::SplitMode mode, abi::Raster raster>
class PersistentShares;
template <const abi::Sm90Design& design>
struct WarpgroupPartsShared;
template <const abi::Sm90Design& design>
class WarpgroupParts;
template <const abi::Sm90Design& design>
struct RegisterTeam;
template <const abi::Sm90Design& design, class Sums>
struct ValueTeam;
template <const abi::Sm90Design& design>
struct SplitSumsShared;
template <const abi::Sm90Design& design, class Sums, class StoredSums>
class SplitSums;

// gemm/sm90_transpose.cuh, sm90_operand_parts.cuh, copy/register_operand.cuh, decoded_operand.cuh
template <const abi::Sm90Design& design>
class Sm90Transpose;
template <const abi::Sm90Design& design>
class Sm90OperandParts;
template <const abi::Sm90Design& design>
class RegisterOperand;
template <const abi::Sm90Design& design>
class DecodedOperand;

}  // namespace gemmery::device
