// SPDX-License-Identifier: Apache-2.0
// The design of an sm90 kernel, and the warpgroups and registers that follow from it.
// sm90_shared.hpp has its shared memory; sm90_faults.hpp says which designs are legal.
#pragma once

#include <device/abi/companions.hpp>
#include <device/abi/dtype.hpp>
#include <device/abi/host_device.hpp>
#include <device/abi/major.hpp>
#include <device/abi/mma_math.hpp>
#include <device/abi/operand_parts.hpp>
#include <device/abi/raster.hpp>
#include <device/abi/split.hpp>

namespace gemmery::abi {

/// How the consumer warpgroups share work. Cooperative: each takes some rows of one tile, or half
/// of its columns if rows do not divide (`splits_columns`). Ping-pong: two take whole tiles in
/// turn, and one stores while the other multiplies. Rotation: three take tiles in turn, so that one
/// tile is finished while two others are multiplied.
enum class Schedule : unsigned char { cooperative, ping_pong, rotation };

/// The convolution that a kernel computes, if any. In fprop and dgrad rows of A are pixels, and k
/// is taps and channels; in wgrad columns of B are taps and channels, and k is pixels.
enum class Sm90Conv : unsigned char { none, fprop, dgrad, wgrad };

/// The vectors of scales that a stage has for each part of its k: those of rows, of columns, or of
/// both. A scale that is the same for all of a tile's columns (rows) multiplies those of its rows
/// (columns) as they are loaded.
enum class ScaleVectors : unsigned char { none, rows, columns, both };

/// out is row major here; the host transposes a problem with a column-major out into out^T = B^T
/// A^T.
struct Sm90Design {
  DType a;
  DType b;  // as wide as a
  DType accumulator;
  MmaMath math;
  DType c;
  DType out;
  Major a_major;
  Major b_major;
  int tile_m;
  int tile_n;
  int cluster_m;  // blocks of a cluster along m share their tile of B, those along n that of A
  int cluster_n;
  Schedule schedule;
  Raster raster;
  int stages;  // blocks of k in shared memory at once
  bool has_c;
  int split_k = 1;  // blocks of a cluster that multiply shares of k of one tile
  // True if a wgmma adds the emitted epilogue's addend, a row vector, to the accumulators.
  bool adds_vector = false;
  // Bytes of shared memory for an emitted epilogue (abi/sm90_program.hpp).
  int program_bytes = 0;
  // How blocks, or clusters, split the k of a tile through the workspace; with `split_k`, the k of
  // each block of a cluster.
  SplitMode split = SplitMode::none;
  // Bytes of one store of out. 16: by TMA. 1 to 8: by threads, to rows aligned to as many bytes. 0:
  // by threads to single elements at any strides.
  int out_access = 16;
  // True if elements of C are read one by one, at any strides.
  bool has_any_c = false;
  // True if A goes to wgmma through registers: it has 8-bit elements, is not K-major and is
  // transposed there (abi/atom_fragment.hpp), not in shared memory; or it has codes, which are
  // decoded there to the type of B (abi/code_fragment.hpp).
  bool a_by_registers = false;
  // True if the rows of out are adjacent in memory instead of its columns: two rows are stored at
  // once.
  bool has_adjacent_rows = false;
  // True if batches may be arrays of pointers. Tensor maps then have four dimensions.
  bool has_pointers = false;
  // True if the batch consists of groups, whose rows or columns are bounded by sizes in memory.
  bool has_groups = false;
  // True if groups are found in a table in the parameters, not in memory.
  bool has_group_table = false;
  // True if groups are problems of a list among its parameters.
  bool has_list = false;
  // True if elements of out in no group are set to zero.
  bool clears_outside = false;
  // True if threads store rows of groups to rows of out that are found by indices.
  bool scatters_rows = false;
  // True if threads copy rows of A that are found by indices.
  bool gathers_rows = false;
  Sm90Conv conv = Sm90Conv::none;
  int dimensions = 0;  // of a convolution's images: 1 to 3
  // True for a dgrad with a stride: batches are the phases of its pixels, each with its own taps.
  bool has_phases = false;
  // True for a wgrad whose taps are padded to whole units of columns, more than out has.
  bool has_tap_columns = false;
  // For operands with scales that vary along k: elements of k that have one scale for each row and
  // column, whose products are scaled and added at a time, or whose codes are; and the types of the
  // scales.
  ScaleVectors scale_vectors = ScaleVectors::none;
  int scaled_k = 0;
  CompanionTypes a_scales = {};
  CompanionTypes b_scales = {};

  bool operator==(const Sm90Design&) const = default;
};

inline constexpr int sm90_swizzle_bytes = 128;  // of a row in shared memory
inline constexpr int sm90_block_rows = 64;      // rows of the accumulator of one wgmma
inline constexpr int warpgroup_threads = 128;
inline constexpr int warps_per_consumer = warpgroup_threads / 32;
/// Rows of a block of 64 whose accumulators one warp holds. The warp loads and stores them by its
/// own copies and waits for no other warp.
inline constexpr int sm90_warp_rows = 16;
inline constexpr int sm90_shared_limit = 227 * 1024;

/// True if A has codes that are decoded to the type of B, a 16-bit float.
GEMMERY_HOST_DEVICE
constexpr bool decodes_a(const Sm90Design& design) {
  return is_code(design.a) && is_half(design.b);
}

/// Elements of k in one stage: a swizzled row of a K-major B, and of an A that is not decoded.
GEMMERY_HOST_DEVICE
constexpr int tile_k(const Sm90Design& design) { return sm90_swizzle_bytes / bytes_of(design.b); }

/// Bytes of a row of a K-major A in a stage.
GEMMERY_HOST_DEVICE
constexpr int a_line_bytes(const Sm90Design& design) {
  return bytes_of_run(design.a, tile_k(design));
}

/// For an operand that is not K-major: the number of rows or columns that one copy loads, for all k
/// of a stage, as one swizzled row for each k. It is the number of k of a stage.
GEMMERY_HOST_DEVICE
constexpr int atom_extent(const Sm90Design& design) { return tile_k(design); }

GEMMERY_HOST_DEVICE
constexpr bool has_scales(const Sm90Design& design) {
  return design.scale_vectors != ScaleVectors::none;
}
/// Parts of a stage's k, each with scales of its own; 0 without scales.
GEMMERY_HOST_DEVICE
constexpr int scale_parts(const Sm90Design& design) {
  return has_scales(design) ? tile_k(design) / design.scaled_k : 0;
}
/// Scales of one part: first those of rows, then those of columns; behind them zero points of rows.
/// Rows of codes may have zero points alone.
GEMMERY_HOST_DEVICE
constexpr int row_scales(const Sm90Design& design) {
  const bool are_of_columns = design.scale_vectors == ScaleVectors::columns;
  const bool has_rows = !decodes_a(design) || design.a_scales.scale_count > 0;
  return has_scales(design) && !are_of_columns && has_rows ? design.tile_m : 0;
}
GEMMERY_HOST_DEVICE
constexpr int column_scales(const Sm90Design& design) {
  return has_scales(design) && design.scale_vectors != ScaleVectors::rows ? design.tile_n : 0;
}

GEMMERY_HOST_DEVICE
constexpr int row_zeros(const Sm90Design& design) {
  return design.a_scales.has_zero_point ? design.tile_m : 0;
}
/// Values of one part, of four bytes each.
GEMMERY_HOST_DEVICE
constexpr int part_values(const Sm90Design& design) {
  return row_scales(design) + column_scales(design) + row_zeros(design);
}

/// True if scales multiply decoded codes; else they multiply the products of a part.
GEMMERY_HOST_DEVICE
constexpr bool scales_codes(const Sm90Design& design) {
  return decodes_a(design) && scale_decoded(design.a, design.a_scales);
}
GEMMERY_HOST_DEVICE
constexpr bool scales_products(const Sm90Design& design) {
  return row_scales(design) + column_scales(design) > 0 && !scales_codes(design);
}

/// For a convolution: the operand that TMA loads in im2col mode.
GEMMERY_HOST_DEVICE
constexpr bool finds_rows(const Sm90Design& design) {
  return design.conv == Sm90Conv::fprop || design.conv == Sm90Conv::dgrad;
}
GEMMERY_HOST_DEVICE
constexpr bool finds_columns(const Sm90Design& design) { return design.conv == Sm90Conv::wgrad; }

/// True if wgmma takes operands of this type that are not K-major. Others are transposed first.
GEMMERY_HOST_DEVICE
constexpr bool takes_any_major(DType operand) { return bytes_of(operand) == 2; }
GEMMERY_HOST_DEVICE
constexpr bool is_transposed(DType operand, Major major) {
  return major != Major::k && !takes_any_major(operand);
}

/// The type that wgmma multiplies for operands of a type.
GEMMERY_HOST_DEVICE
constexpr DType multiplied_type(MmaMath math, DType operand) {
  return splits_to_bf16(math) ? DType::bfloat16 : operand;
}

/// The type of A in the instruction.
GEMMERY_HOST_DEVICE
constexpr DType multiplied_a(const Sm90Design& design) {
  return decodes_a(design) ? design.b : multiplied_type(design.math, design.a);
}

/// True if an operand is transposed in shared memory in a phase of its own. Split operands are
/// transposed while they are split.
GEMMERY_HOST_DEVICE
constexpr bool transposes_a(const Sm90Design& design) {
  return is_transposed(design.a, design.a_major) && !design.a_by_registers &&
         !splits_operands(design.math);
}
GEMMERY_HOST_DEVICE
constexpr bool transposes_b(const Sm90Design& design) {
  return is_transposed(design.b, design.b_major) && !splits_operands(design.math);
}

/// In a warp's 16 rows of a block of 64: the row of a lane's first accumulators, and the distance
/// to the row of its others. If A is transposed in registers, or pairs of rows are stored, the two
/// rows are adjacent.
GEMMERY_HOST_DEVICE
constexpr bool has_row_pairs(const Sm90Design& design) {
  return design.a_by_registers && (!decodes_a(design) || design.has_adjacent_rows);
}
GEMMERY_HOST_DEVICE
constexpr unsigned first_row_of_lane(const Sm90Design& design, unsigned lane) {
  return has_row_pairs(design) ? lane / 4 * 2 : lane / 4;
}
GEMMERY_HOST_DEVICE
constexpr unsigned second_row_distance(const Sm90Design& design) {
  return has_row_pairs(design) ? 1 : 8;
}

/// The major of the operand in shared memory when wgmma reads it.
GEMMERY_HOST_DEVICE
constexpr Major multiplied_major(DType operand, Major major) {
  return takes_any_major(operand) ? major : Major::k;
}

/// True if two consumers take all rows of a tile and half of its columns each: five blocks of rows
/// are too many for one consumer, and they do not divide by two.
GEMMERY_HOST_DEVICE
constexpr bool splits_columns(const Sm90Design& design) {
  return design.schedule == Schedule::cooperative && design.tile_m / sm90_block_rows == 5;
}

/// The number of consumer warpgroups that take tiles in turn; 1 if all consumers share each tile.
GEMMERY_HOST_DEVICE
constexpr int turn_count(const Sm90Design& design) {
  return design.schedule == Schedule::rotation ? 3 : design.schedule == Schedule::ping_pong ? 2 : 1;
}
GEMMERY_HOST_DEVICE
constexpr bool takes_turns(const Sm90Design& design) { return turn_count(design) > 1; }

/// Consumer warpgroups. One more warpgroup, the producer, loads the operands.
GEMMERY_HOST_DEVICE
constexpr int consumer_count(const Sm90Design& design) {
  if (takes_turns(design)) return turn_count(design);
  const int blocks = design.tile_m / sm90_block_rows;
  return blocks > 3 ? 2 : blocks;
}

/// Consumer warpgroups that multiply one tile.
GEMMERY_HOST_DEVICE
constexpr int consumers_per_tile(const Sm90Design& design) {
  return takes_turns(design) ? 1 : consumer_count(design);
}

GEMMERY_HOST_DEVICE
constexpr int blocks_per_consumer(const Sm90Design& design) {
  const int shares = splits_columns(design) ? 1 : consumers_per_tile(design);
  return design.tile_m / sm90_block_rows / shares;
}

/// Columns of a tile that one consumer multiplies; one wgmma covers them.
GEMMERY_HOST_DEVICE
constexpr int columns_per_consumer(const Sm90Design& design) {
  return splits_columns(design) ? design.tile_n / 2 : design.tile_n;
}

GEMMERY_HOST_DEVICE
constexpr int thread_count(const Sm90Design& design) {
  return (1 + consumer_count(design)) * warpgroup_threads;
}

GEMMERY_HOST_DEVICE
constexpr int accumulators_per_thread(const Sm90Design& design) {
  return blocks_per_consumer(design) * columns_per_consumer(design) / 2;
}

/// A register holds two float16 accumulators.
GEMMERY_HOST_DEVICE
constexpr int accumulator_registers(const Sm90Design& design) {
  return accumulators_per_thread(design) * bytes_of(design.accumulator) / 4;
}

/// True if a consumer adds the products of each block of k to separate accumulators by FADD, or by
/// FFMA with a scale.
GEMMERY_HOST_DEVICE
constexpr bool is_promoted(const Sm90Design& design) {
  return design.math == MmaMath::promoted || splits_operands(design.math) ||
         scales_products(design);
}

/// True if promoted accumulators are registers that PTX declares (mma/wgmma.cuh, TotalSums), not
/// values of C++, which scales, and blocks that split k, take.
GEMMERY_HOST_DEVICE
constexpr bool totals_registers(const Sm90Design& design) {
  return is_promoted(design) && !has_scales(design) && design.split_k == 1 &&
         design.split == SplitMode::none;
}

/// Registers that hold accumulators: twice as many if they are promoted.
GEMMERY_HOST_DEVICE
constexpr int held_registers(const Sm90Design& design) {
  return accumulator_registers(design) * (is_promoted(design) ? 2 : 1);
}

/// Registers of a thread after `setmaxnreg`; 0 if the launch already gives every thread enough.
struct RegisterBudget {
  int producer;
  int consumer;
};

/// 40/232 for two consumers, 24/240 if accumulators fill 200 registers or more (with 40/232,
/// 256x208 spills, and 320x160 with C; ptxas 13.0), 32/160 for three. 56/224 and 56/152 where the
/// producer's warpgroup clears what is outside of groups (8 to 76 bytes spilled with 40 and 32),
/// loads scales, or walks phases or padded taps (8 spilled).
GEMMERY_HOST_DEVICE
constexpr RegisterBudget register_budget(const Sm90Design& design) {
  if (consumer_count(design) == 1) return {.producer = 0, .consumer = 0};
  if (design.clears_outside || has_scales(design) || design.has_phases || design.has_tap_columns)
    return {.producer = 56, .consumer = consumer_count(design) == 3 ? 152 : 224};
  if (consumer_count(design) == 3) return {.producer = 32, .consumer = 160};
  if (held_registers(design) >= 200) return {.producer = 24, .consumer = 240};
  return {.producer = 40, .consumer = 232};
}

/// Registers of a consumer's thread that hold no accumulators.
GEMMERY_HOST_DEVICE
constexpr int registers_beside_sums(const Sm90Design& design) {
  constexpr int most = 255;
  const int budget = register_budget(design).consumer;
  return (budget == 0 ? most : budget) - held_registers(design);
}

/// True if they are enough for any program: 72 are. 48 (240 minus 192 accumulators) and 32 (in
/// rotation) are enough for light programs in a different form of the code (ptxas 13.0: with 192
/// accumulators 23 registers spilled if vectors were read ahead).
GEMMERY_HOST_DEVICE
constexpr bool has_room_beside_sums(const Sm90Design& design) {
  return registers_beside_sums(design) >= 72;
}

/// True if they are enough for a program of codes whose threads read full tensors: 80 to 600 bytes
/// spilled beside 128 accumulators (ptxas 13.0).
GEMMERY_HOST_DEVICE
constexpr bool has_room_to_read(const Sm90Design& design) {
  return !decodes_a(design) || held_registers(design) <= 112;
}

/// True if the default program may prefetch C into L2 during the mainloop. Not with more
/// accumulators: 176 spilled 5 registers, 192 up to 15, 208 12 (ptxas 13.0).
GEMMERY_HOST_DEVICE
constexpr bool has_room_to_prefetch(const Sm90Design& design) {
  return accumulator_registers(design) <= 160;
}

GEMMERY_HOST_DEVICE
constexpr bool stores_by_tma(const Sm90Design& design) {
  return design.out_access == 16 && !design.has_adjacent_rows && !design.scatters_rows;
}

/// Warps that load scales: those of the producer's warpgroup that load no operands.
inline constexpr int scale_warps = 3;

/// Threads that copy rows of A by index: the producer's warpgroup without its first warp.
inline constexpr int gathering_threads = warpgroup_threads - 32;

/// True if rows of A that threads have copied are rounded to TF32 in a phase of its own; TMA rounds
/// others on their way.
GEMMERY_HOST_DEVICE
constexpr bool rounds_rows(const Sm90Design& design) {
  return design.gathers_rows && design.math == MmaMath::tf32;
}

/// Blocks that share an operand.
GEMMERY_HOST_DEVICE
constexpr int sharing_blocks(const Sm90Design& design) {
  return design.cluster_m * design.cluster_n;
}

GEMMERY_HOST_DEVICE
constexpr int cluster_size(const Sm90Design& design) {
  return sharing_blocks(design) * design.split_k;
}

/// The design of a block's stores. If k is split within a cluster, its tile is the block's share of
/// the columns, for which the block adds the accumulators of all blocks (floating-point ones in
/// float32).
GEMMERY_HOST_DEVICE
constexpr Sm90Design stored_design(const Sm90Design& design) {
  Sm90Design stored = design;
  if (design.split_k == 1) return stored;
  stored.tile_n = design.tile_n / design.split_k;
  if (!is_integer(design.accumulator)) stored.accumulator = DType::float32;
  stored.split_k = 1;
  return stored;
}

/// The same as a template argument. Device templates take designs by reference: symbols then name a
/// design and do not spell out its fields, which takes the compiler a twentieth of its time.
template <const Sm90Design& design>
struct SplitDesign {
  static constexpr Sm90Design stored = stored_design(design);
};
template <const Sm90Design& design>
GEMMERY_HOST_DEVICE
constexpr const Sm90Design& stored_of() {
  if constexpr (design.split_k == 1)
    return design;
  else
    return SplitDesign<design>::stored;
}

/// If blocks split tiles through the workspace: parts of a share of k of a tile. Each consumer of
/// each block of a cluster stores its own accumulators; those of blocks that split k within a
/// cluster are sums over the cluster already.
GEMMERY_HOST_DEVICE
constexpr int parts_per_share(const Sm90Design& design) {
  return cluster_size(design) * consumers_per_tile(design);
}
GEMMERY_HOST_DEVICE
constexpr int part_bytes(const Sm90Design& design) {
  return accumulator_registers(stored_design(design)) * 4 * warpgroup_threads;
}

}  // namespace gemmery::abi
