// SPDX-License-Identifier: Apache-2.0
// The shared memory of an sm90 kernel: pipeline stages, staging tiles, and the memory of split k
// and groups.
#pragma once

#include <device/abi/sm90_design.hpp>

namespace gemmery::abi {

/// Bytes of an operand that are loaded for one stage: rows if it is K-major, otherwise whole atoms.
GEMMERY_HOST_DEVICE
constexpr int operand_stage_bytes(Major major, int extent, int atom, int line_bytes) {
  const int rows = major == Major::k ? extent : (extent + atom - 1) / atom * atom;
  return rows * line_bytes;
}

GEMMERY_HOST_DEVICE
constexpr int a_tile_bytes(const Sm90Design& design) {
  return operand_stage_bytes(design.a_major, design.tile_m, atom_extent(design),
                             a_line_bytes(design));
}

GEMMERY_HOST_DEVICE
constexpr int b_tile_bytes(const Sm90Design& design) {
  return operand_stage_bytes(design.b_major, design.tile_n, atom_extent(design),
                             sm90_swizzle_bytes);
}

/// Bytes of the parts of a split operand that lie after its tile.
GEMMERY_HOST_DEVICE
constexpr int behind_bytes(MmaMath math, int tile_bytes) {
  return tile_bytes / sm90_swizzle_bytes * part_bytes_per_line(math);
}

GEMMERY_HOST_DEVICE
constexpr int a_stage_bytes(const Sm90Design& design) {
  return a_tile_bytes(design) + behind_bytes(design.math, a_tile_bytes(design));
}

GEMMERY_HOST_DEVICE
constexpr int b_stage_bytes(const Sm90Design& design) {
  return b_tile_bytes(design) + behind_bytes(design.math, b_tile_bytes(design));
}

/// Rows of a K-major operand that one copy loads. A box has at most 256; two blocks that share a
/// tile load half of it each.
GEMMERY_HOST_DEVICE
constexpr int rows_per_copy(int extent, bool is_shared) {
  return is_shared || extent > 256 ? extent / 2 : extent;
}

/// Columns of out in one store: the widest of 128, 64 or 32 bytes that divides what a consumer
/// stores.
GEMMERY_HOST_DEVICE
constexpr int staging_columns(const Sm90Design& design) {
  const int widest = sm90_swizzle_bytes / bytes_of(design.out);
  const int columns = columns_per_consumer(stored_design(design));
  if (columns % widest == 0) return widest;
  return columns % (widest / 2) == 0 ? widest / 2 : widest / 4;
}

GEMMERY_HOST_DEVICE
constexpr int staging_pitch_bytes(const Sm90Design& design) {
  return staging_columns(design) * bytes_of(design.out);
}

GEMMERY_HOST_DEVICE
constexpr int staging_bytes(const Sm90Design& design) {
  return sm90_block_rows * staging_pitch_bytes(design);
}

/// True if the accumulators leave too few registers for C.
GEMMERY_HOST_DEVICE
constexpr bool is_crowded(const Sm90Design& design) {
  return design.has_c && accumulator_registers(design) > 160;
}

/// How many groups of 16 columns are computed before any is written. By default all of a staging
/// tile: then no memory access separates the arithmetic of different columns, and one hides the
/// latency of the other. One with many accumulators and a C, whose elements would all be waited
/// for at once. One in rotation: two warpgroups are in their epilogues at a time, and arithmetic
/// of few columns slows wgmmas down less (8192x4096x512: gelu 7.6 to 5.8 % over the plain kernel,
/// with amax 21 to 16; docs/performance.md).
GEMMERY_HOST_DEVICE
constexpr int sixteens_together(const Sm90Design& design) {
  constexpr int most = 4;
  const int sixteens = staging_columns(design) / 16;
  if (is_crowded(design) || design.schedule == Schedule::rotation) return 1;
  return sixteens > most ? most : sixteens;
}

/// True if results have a form that one statement can compute (ptx/results.cuh).
GEMMERY_HOST_DEVICE
constexpr bool has_stated_results(const Sm90Design& design) {
  if (design.accumulator != DType::int32)
    return design.out == DType::float32 || design.out == DType::float16 ||
           design.out == DType::bfloat16 || design.out == DType::float8_e4m3fn ||
           design.out == DType::float8_e5m2;
  if (design.out == DType::int32) return design.has_c;  // others pass most accumulators on
  return design.out == DType::float32 || design.out == DType::int8 || design.out == DType::uint8;
}

inline constexpr int most_result_groups = 16;

/// Groups of columns of a consumer that are computed together, in all of its blocks of rows.
GEMMERY_HOST_DEVICE
constexpr int result_groups(const Sm90Design& design) {
  return columns_per_consumer(stored_design(design)) / (16 * sixteens_together(design)) *
         blocks_per_consumer(design);
}

/// True if the default epilogue computes its results from wgmma's registers in statements whose
/// text the source of the kernel defines (ptx/results.cuh). Not if the epilogue gets accumulators
/// as C++ values (mma/wgmma.cuh, SumsForm), reads a C of any strides, or computes 16 columns at a
/// time: a statement for so few takes longer to compile. Nor in many groups, each of which has the
/// statements of all until loops are unrolled: 30 groups took 2.4 s to compile, 0.55 s without.
GEMMERY_HOST_DEVICE
constexpr bool states_results(const Sm90Design& design) {
  const bool are_in_registers =
      design.split_k == 1 &&
      (!is_promoted(design) || design.split != SplitMode::none || totals_registers(design));
  return are_in_registers && has_stated_results(design) && !design.has_any_c &&
         !design.has_adjacent_rows && result_groups(design) <= most_result_groups &&
         (sixteens_together(design) > 1 || staging_columns(design) == 16);
}

inline constexpr int staging_tiles_per_consumer = 2;  // one is filled while the other is stored

/// Bytes of a stage's scales, which are float32, and of what codes need, pairs of their numbers.
GEMMERY_HOST_DEVICE
constexpr int scale_stage_bytes(const Sm90Design& design) {
  return scale_parts(design) * part_values(design) * 4;
}

/// Bytes of one stage, barriers included.
GEMMERY_HOST_DEVICE
constexpr int stage_bytes(const Sm90Design& design) {
  constexpr int barrier_bytes = 16;  // a full and an empty one
  return a_stage_bytes(design) + b_stage_bytes(design) + scale_stage_bytes(design) + barrier_bytes;
}

GEMMERY_HOST_DEVICE
constexpr int all_staging_bytes(const Sm90Design& design) {
  return consumer_count(design) * staging_tiles_per_consumer * staging_bytes(design);
}

/// If k is split within a cluster: for the columns that this block stores, the accumulators of all
/// blocks of the cluster, and for each consumer warp two mbarriers, one for their arrival and one
/// for the end of their use.
GEMMERY_HOST_DEVICE
constexpr int split_sums_bytes(const Sm90Design& design) {
  if (design.split_k == 1) return 0;
  constexpr int barrier_bytes = warps_per_consumer * 16;
  return consumer_count(design) *
         (accumulator_registers(design) * 4 * warpgroup_threads + barrier_bytes);
}

/// If blocks split tiles through the workspace: a word for each consumer warpgroup, in units of
/// 16 bytes.
GEMMERY_HOST_DEVICE
constexpr int part_flag_bytes(const Sm90Design& design) {
  return design.split == SplitMode::none ? 0 : (consumer_count(design) + 3) / 4 * 16;
}

/// Tiles of groups that the producer may find ahead of the consumers.
inline constexpr int group_tile_records = 4;

/// For a gather: a word for each row of a tile.
GEMMERY_HOST_DEVICE
constexpr int gathered_row_bytes(int tile_m) { return tile_m * 4; }

/// With groups: for each of these tiles a record of 32 bytes, a full and an empty barrier.
GEMMERY_HOST_DEVICE
constexpr int group_tile_bytes(const Sm90Design& design) {
  if (!design.has_groups) return 0;
  return group_tile_records * (32 + 16) +
         (design.gathers_rows ? gathered_row_bytes(design.tile_m) : 0);
}

GEMMERY_HOST_DEVICE
constexpr int shared_bytes(const Sm90Design& design) {
  constexpr int alignment = 1024;  // divides the limit
  const int used = design.stages * stage_bytes(design) + all_staging_bytes(design) +
                   split_sums_bytes(design) + part_flag_bytes(design) + group_tile_bytes(design);
  return (used + alignment - 1) / alignment * alignment + design.program_bytes;
}

/// Dynamic shared memory of a launch: more than half of a multiprocessor's. Otherwise a launch that
/// begins while the previous one ends would put two blocks on some multiprocessors and none on
/// others (512^3 in tiles of 64x32: 3.41 us, alone on each 3.18; H200, 2026-11-21).
GEMMERY_HOST_DEVICE
constexpr int launch_shared_bytes(const Sm90Design& design) {
  constexpr int half = 116 * 1024;
  return shared_bytes(design) > half ? shared_bytes(design) : half;
}

/// Bytes left for stages and for the program's shared memory.
GEMMERY_HOST_DEVICE
constexpr int stage_room(const Sm90Design& design) {
  return sm90_shared_limit - all_staging_bytes(design) - split_sums_bytes(design) -
         part_flag_bytes(design) - group_tile_bytes(design);
}

/// The number of stages that fit, at most 8: more gain nothing.
GEMMERY_HOST_DEVICE
constexpr int stages_in(int room, int bytes_of_one) {
  const int stages = room / bytes_of_one;
  return stages < 8 ? stages : 8;
}
GEMMERY_HOST_DEVICE
constexpr int most_stages(const Sm90Design& design) {
  return stages_in(stage_room(design) - design.program_bytes, stage_bytes(design));
}

}  // namespace gemmery::abi
