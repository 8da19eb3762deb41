// SPDX-License-Identifier: Apache-2.0
// The design of an sm90 kernel and what follows from it: warpgroups, registers, shared memory, and
// which designs are legal.
#pragma once

#include <device/abi/dtype.hpp>
#include <device/abi/host_device.hpp>
#include <device/abi/major.hpp>
#include <device/abi/mma_math.hpp>
#include <device/abi/raster.hpp>
#include <device/abi/split.hpp>

namespace gemmery::abi {

/// How the multiplying warpgroups share work: cooperative, each takes some rows of one tile, or
/// half of its columns where rows do not divide (`splits_columns`); or ping-pong, two take whole
/// tiles in turn, and one stores while the other multiplies; or in rotation, three do, so that a
/// tile is finished while two others are multiplied.
enum class Schedule : unsigned char { cooperative, ping_pong, rotation };

/// out is row major here; the host turns a column-major out into out^T = B^T A^T.
struct Sm90Design {
  DType a;
  DType b;  // of as many bits
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
  // How blocks share the k of a tile through the workspace, beyond clusters.
  SplitMode split = SplitMode::none;
  // Bytes of one store of out: 16 by TMA, 1 to 8 by threads, to rows that are aligned to as many; 0
  // by threads to single elements at any strides.
  int out_access = 16;
  // True if elements of C are read one by one, at any strides.
  bool has_any_c = false;

  bool operator==(const Sm90Design&) const = default;
};

constexpr int sm90_swizzle_bytes = 128;  // of a row in shared memory
constexpr int sm90_block_rows = 64;      // rows of the accumulator of one wgmma
constexpr int warpgroup_threads = 128;
constexpr int sm90_shared_limit = 227 * 1024;
constexpr int rotation_tile = 128;  // rows and columns of a tile where three take turns

/// Elements of k in one stage: a swizzled row of a K-major operand.
GEMMERY_HOST_DEVICE
constexpr int tile_k(const Sm90Design& design) { return sm90_swizzle_bytes / bytes_of(design.a); }

/// Rows or columns of an operand whose k is not adjacent that one copy brings of all k of a stage,
/// as a swizzled row for each k: as many as the stage has k.
GEMMERY_HOST_DEVICE
constexpr int atom_extent(const Sm90Design& design) { return tile_k(design); }

/// True if wgmma takes operands whose k is not adjacent. Others are transposed in shared memory.
GEMMERY_HOST_DEVICE
constexpr bool takes_any_major(DType operand) { return bytes_of(operand) == 2; }
GEMMERY_HOST_DEVICE
constexpr bool is_transposed(DType operand, Major major) {
  return major != Major::k && !takes_any_major(operand);
}

/// As wgmma finds the operand in shared memory.
GEMMERY_HOST_DEVICE
constexpr Major multiplied_major(DType operand, Major major) {
  return takes_any_major(operand) ? major : Major::k;
}

/// Whether two consumers take all rows of a tile and half of its columns each: five blocks of rows
/// are too many for one and have no halves.
GEMMERY_HOST_DEVICE
constexpr bool splits_columns(const Sm90Design& design) {
  return design.schedule == Schedule::cooperative && design.tile_m / sm90_block_rows == 5;
}

/// Warpgroups of which each takes every so many-th tile; 1 where all share each one.
GEMMERY_HOST_DEVICE
constexpr int turn_count(const Sm90Design& design) {
  return design.schedule == Schedule::rotation ? 3 : design.schedule == Schedule::ping_pong ? 2 : 1;
}
GEMMERY_HOST_DEVICE
constexpr bool takes_turns(const Sm90Design& design) { return turn_count(design) > 1; }

/// Warpgroups that multiply. One more brings the operands.
GEMMERY_HOST_DEVICE
constexpr int consumer_count(const Sm90Design& design) {
  if (takes_turns(design)) return turn_count(design);
  const int blocks = design.tile_m / sm90_block_rows;
  return blocks > 3 ? 2 : blocks;
}

/// Of them, those that multiply one tile.
GEMMERY_HOST_DEVICE
constexpr int consumers_per_tile(const Sm90Design& design) {
  return takes_turns(design) ? 1 : consumer_count(design);
}

GEMMERY_HOST_DEVICE
constexpr int blocks_per_consumer(const Sm90Design& design) {
  const int shares = splits_columns(design) ? 1 : consumers_per_tile(design);
  return design.tile_m / sm90_block_rows / shares;
}

/// Of a tile; one wgmma covers them.
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

/// True if a consumer adds the products of each block of k to accumulators of its own.
GEMMERY_HOST_DEVICE
constexpr bool is_promoted(const Sm90Design& design) { return design.math == MmaMath::promoted; }

/// Registers that hold accumulators: twice as many if they are promoted.
GEMMERY_HOST_DEVICE
constexpr int held_registers(const Sm90Design& design) {
  return accumulator_registers(design) * (is_promoted(design) ? 2 : 1);
}

/// Registers of a thread after `setmaxnreg`; 0 where the launch gives every thread enough.
struct RegisterBudget {
  int producer;
  int consumer;
};

/// 40/232 for two consumers, 24/240 where accumulators fill 200 registers or more (with 40/232,
/// 256x208 spills, and 320x160 with C; ptxas 13.0), 32/160 for three.
GEMMERY_HOST_DEVICE
constexpr RegisterBudget register_budget(const Sm90Design& design) {
  if (consumer_count(design) == 1) return {.producer = 0, .consumer = 0};
  if (consumer_count(design) == 3) return {.producer = 32, .consumer = 160};
  if (held_registers(design) >= 200) return {.producer = 24, .consumer = 240};
  return {.producer = 40, .consumer = 232};
}

/// Registers that a consumer's thread has beside its accumulators.
GEMMERY_HOST_DEVICE
constexpr int registers_beside_sums(const Sm90Design& design) {
  constexpr int most = 255;
  const int budget = register_budget(design).consumer;
  return (budget == 0 ? most : budget) - held_registers(design);
}

/// True if they are enough for any program: 72 are. 48 (240 less 192 accumulators) and 32 (in
/// rotation) are enough for light programs, with other code (ptxas 13.0: beside 192 accumulators 23
/// registers spilled if vectors were read ahead).
GEMMERY_HOST_DEVICE
constexpr bool has_room_beside_sums(const Sm90Design& design) {
  return registers_beside_sums(design) >= 72;
}

GEMMERY_HOST_DEVICE
constexpr bool stores_by_tma(const Sm90Design& design) { return design.out_access == 16; }

/// Blocks that share an operand.
GEMMERY_HOST_DEVICE
constexpr int sharing_blocks(const Sm90Design& design) {
  return design.cluster_m * design.cluster_n;
}

GEMMERY_HOST_DEVICE
constexpr int cluster_size(const Sm90Design& design) {
  return sharing_blocks(design) * design.split_k;
}

/// What a block stores, as a design whose tile it is: of a tile whose k is split, its share of the
/// columns, for which it has added up the accumulators of all blocks, floating ones in float32.
GEMMERY_HOST_DEVICE
constexpr Sm90Design stored_design(const Sm90Design& design) {
  Sm90Design stored = design;
  if (design.split_k == 1) return stored;
  stored.tile_n = design.tile_n / design.split_k;
  if (!is_integer(design.accumulator)) stored.accumulator = DType::float32;
  stored.split_k = 1;
  return stored;
}

// --- shared memory ------------------------------------------------------------------------------

/// Bytes of one stage of an operand: K-major by rows, otherwise in atoms that are brought whole.
GEMMERY_HOST_DEVICE
constexpr int operand_stage_bytes(Major major, int extent, int atom) {
  const int rows = major == Major::k ? extent : (extent + atom - 1) / atom * atom;
  return rows * sm90_swizzle_bytes;
}

GEMMERY_HOST_DEVICE
constexpr int a_stage_bytes(const Sm90Design& design) {
  return operand_stage_bytes(design.a_major, design.tile_m, atom_extent(design));
}

GEMMERY_HOST_DEVICE
constexpr int b_stage_bytes(const Sm90Design& design) {
  return operand_stage_bytes(design.b_major, design.tile_n, atom_extent(design));
}

/// Rows of a K-major operand that one copy brings: a box has at most 256, and two blocks that share
/// a tile bring half of it each.
GEMMERY_HOST_DEVICE
constexpr int rows_per_copy(int extent, bool is_shared) {
  return is_shared || extent > 256 ? extent / 2 : extent;
}

/// Columns of out that leave in one store: the widest of 128, 64 or 32 bytes of which what a
/// consumer stores is a whole number.
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

constexpr int staging_tiles_per_consumer = 2;  // one is filled while the other is read

/// Rows of a staging tile whose accumulators one warp has. It loads and stores them by copies of
/// its own, so that no warp waits for another.
constexpr int sm90_warp_rows = 16;
constexpr int warps_per_consumer = warpgroup_threads / 32;

/// What the stages take and what else a block needs.
GEMMERY_HOST_DEVICE
constexpr int stage_bytes(const Sm90Design& design) {
  constexpr int barrier_bytes = 16;  // a full and an empty one
  return a_stage_bytes(design) + b_stage_bytes(design) + barrier_bytes;
}

GEMMERY_HOST_DEVICE
constexpr int all_staging_bytes(const Sm90Design& design) {
  return consumer_count(design) * staging_tiles_per_consumer * staging_bytes(design);
}

/// Where k is split: what blocks of the cluster, this one among them, have of the columns that this
/// one stores, and for each warp that multiplies an mbarrier for what comes and one for what is
/// read.
GEMMERY_HOST_DEVICE
constexpr int split_sums_bytes(const Sm90Design& design) {
  if (design.split_k == 1) return 0;
  constexpr int barrier_bytes = warps_per_consumer * 16;
  return consumer_count(design) *
         (accumulator_registers(design) * 4 * warpgroup_threads + barrier_bytes);
}

/// Where tiles have parts: a word for each warpgroup that multiplies.
GEMMERY_HOST_DEVICE
constexpr int part_flag_bytes(const Sm90Design& design) {
  return design.split == SplitMode::none ? 0 : consumer_count(design) * 4;
}

GEMMERY_HOST_DEVICE
constexpr int shared_bytes(const Sm90Design& design) {
  constexpr int alignment = 1024;  // divides the limit
  const int used = design.stages * stage_bytes(design) + all_staging_bytes(design) +
                   split_sums_bytes(design) + part_flag_bytes(design);
  return (used + alignment - 1) / alignment * alignment + design.program_bytes;
}

/// What a launch asks for: more than half of a multiprocessor's. A launch that begins while the one
/// before it ends would else put two blocks on some and none on others (512^3 in tiles of 64x32:
/// 3.41 us, alone on each 3.18; H200, 2026-11-21).
GEMMERY_HOST_DEVICE
constexpr int launch_shared_bytes(const Sm90Design& design) {
  constexpr int half = 116 * 1024;
  return shared_bytes(design) > half ? shared_bytes(design) : half;
}

/// What is left for stages and for what a program takes.
GEMMERY_HOST_DEVICE
constexpr int stage_room(const Sm90Design& design) {
  return sm90_shared_limit - all_staging_bytes(design) - split_sums_bytes(design) -
         part_flag_bytes(design);
}

/// The stages that fit, at most 8: more are never waited for.
GEMMERY_HOST_DEVICE
constexpr int stages_in(int room, int bytes_of_one) {
  const int stages = room / bytes_of_one;
  return stages < 8 ? stages : 8;
}
GEMMERY_HOST_DEVICE
constexpr int most_stages(const Sm90Design& design) {
  return stages_in(stage_room(design) - design.program_bytes, stage_bytes(design));
}

// --- legality -----------------------------------------------------------------------------------

enum class Sm90Fault : unsigned char {
  none,
  operand_type,
  math,
  accumulator_type,
  c_type,
  out_type,
  tile_m,
  tile_n,
  schedule,
  addend,
  cluster,
  split_k,
  raster,
  accumulators,
  stages,
  shared_bytes
};

namespace detail {

GEMMERY_HOST_DEVICE
constexpr bool is_wgmma_integer(DType dtype) {
  return dtype == DType::int8 || dtype == DType::uint8;
}
GEMMERY_HOST_DEVICE
constexpr bool is_wgmma_byte_float(DType dtype) {
  return dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2;
}
GEMMERY_HOST_DEVICE
constexpr bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

/// wgmma multiplies 8-bit integers, and 8-bit floats, of different types, too.
GEMMERY_HOST_DEVICE
constexpr bool are_sm90_operands(DType a, DType b) {
  if (is_wgmma_integer(a)) return is_wgmma_integer(b);
  if (is_wgmma_byte_float(a)) return is_wgmma_byte_float(b);
  return a == b && (is_half(a) || a == DType::float32);
}

GEMMERY_HOST_DEVICE
constexpr bool is_sm90_math(MmaMath math, DType operand) {
  switch (math) {
    case MmaMath::native:
      return operand != DType::float32;
    case MmaMath::tf32:
      return operand == DType::float32;
    case MmaMath::saturate:
      return is_wgmma_integer(operand);
    case MmaMath::promoted:
      return is_wgmma_byte_float(operand);
    default:
      return false;
  }
}

/// Types that the epilogue of an accumulator reads as C and writes.
GEMMERY_HOST_DEVICE
constexpr bool is_sm90_output(DType dtype, DType accumulator, DType operand) {
  if (dtype == DType::float32) return true;
  if (is_integer(accumulator)) return dtype == DType::int32 || is_wgmma_integer(dtype);
  return is_half(dtype) || (is_wgmma_byte_float(operand) && is_wgmma_byte_float(dtype));
}

/// Where consumers share a tile by columns, the second one's begin at a row of B's that the swizzle
/// repeats at (every 8th), or at an atom.
GEMMERY_HOST_DEVICE
constexpr bool has_column_halves(const Sm90Design& design) {
  if (!splits_columns(design)) return true;
  const bool is_in_rows = multiplied_major(design.b, design.b_major) == Major::k;
  return design.tile_n % (is_in_rows ? 32 : 2 * atom_extent(design)) == 0;
}

/// A staging tile has rows of 32 bytes at least.
GEMMERY_HOST_DEVICE
constexpr bool has_staging_tiles(const Sm90Design& design) {
  return columns_per_consumer(stored_design(design)) * bytes_of(design.out) % 32 == 0;
}

/// A cluster has at most 8 blocks everywhere, and each stores a whole number of 16 columns. Blocks
/// that share operands, too, and warpgroups that take tiles in turn are for many tiles. What is
/// split through the workspace is not split within a cluster as well, nor in rotation, and has
/// operands of 16 bits. Accumulators of shares of k would saturate elsewhere than those of all k.
GEMMERY_HOST_DEVICE
constexpr bool is_split(const Sm90Design& design) {
  const int blocks = design.split_k;
  if (design.split != SplitMode::none)
    return blocks == 1 && design.schedule != Schedule::rotation && is_half(design.a);
  if (blocks == 1) return true;
  return (blocks == 2 || blocks == 4 || blocks == 8) && sharing_blocks(design) == 1 &&
         design.math != MmaMath::saturate && design.schedule == Schedule::cooperative &&
         !splits_columns(design) && design.tile_n % (16 * blocks) == 0;
}

/// What a consumer has for its accumulators. With 512 threads a kernel starts with 128 registers
/// each, of which one wgmma may not fill more than 96 (ptxas 13.0, C7602), and 80 spill beside a C
/// and the accumulators of other blocks. What spills by ptxas 13.0 otherwise:
///
///   with C, in turns           2 to 5 registers at 208 accumulators, 15 at 192 pairs in float16
///   with C, clusters along n   7 at 192, not in turns
///   with C in float32          up to 7 if wgmmas have 192 columns and out has 16 bits, in turns or
///                              without a cluster; 1 at 208 without a cluster
///   without C, in turns        1 at 200 pairs in float16
///   with C, operands of 8 bits 8 to 172 at 192, if out has 8 bits or A and B are transposed
///   parts of tiles             2 to 6 at 208, up to 18 at 156 pairs in float16, when values of C++
///                              carried them; the bounds below are kept by what does not spill
GEMMERY_HOST_DEVICE
constexpr int most_registers_beside_parts(const Sm90Design& design) {
  if (design.split == SplitMode::none) return 208;
  return design.accumulator == DType::float16 ? 128 : 192;
}
GEMMERY_HOST_DEVICE
constexpr int most_registers_beside_stores(const Sm90Design& design) {
  if (consumers_per_tile(design) == 3) return design.has_c && design.split_k > 1 ? 72 : 96;
  const bool takes_turns = abi::takes_turns(design);
  const bool has_half_sums = design.accumulator == DType::float16;
  if (!design.has_c) return takes_turns && has_half_sums ? 192 : 208;
  if (bytes_of(design.a) == 1) return 160;
  const bool is_wide_c = bytes_of(design.c) == 4;
  const bool narrows_wide =
      is_wide_c && bytes_of(design.out) == 2 && columns_per_consumer(design) == 192;
  if (!takes_turns) {
    if (design.cluster_n == 2) return 184;
    if (!is_wide_c || design.cluster_m == 2) return 208;
    return narrows_wide ? 184 : 200;
  }
  if (narrows_wide) return 184;
  return has_half_sums ? 184 : 200;
}

GEMMERY_HOST_DEVICE
constexpr int most_accumulator_registers(const Sm90Design& design) {
  const int stores = most_registers_beside_stores(design);
  const int parts = most_registers_beside_parts(design);
  return stores < parts ? stores : parts;
}

/// A thread of 160 registers holds at most 128 accumulators. A smaller tile needs more bandwidth of
/// L2, and one whose columns are no whole staging tiles of 64 takes a third more instructions
/// (128x112). Of C nothing is read: a program reads its inputs in other ways.
GEMMERY_HOST_DEVICE
constexpr bool is_rotation(const Sm90Design& design) {
  return design.tile_m == rotation_tile && design.tile_n == rotation_tile && !design.has_c &&
         design.split_k == 1;
}

/// As one more product over 16 k: it costs the tensor cores a k of 16, and spares a program's warps
/// two instructions an element. That pays where these are what a tile waits for, in rotation.
GEMMERY_HOST_DEVICE
constexpr bool can_add_vector(const Sm90Design& design) {
  return design.schedule == Schedule::rotation && design.accumulator == DType::float32 &&
         is_half(design.a) && bytes_of(design.out) == 2;
}

/// Bands beyond 64 tiles would hold more tiles than any device has multiprocessors.
GEMMERY_HOST_DEVICE
constexpr bool is_raster(const Raster& raster) {
  const bool is_power_of_two = (raster.band & (raster.band - 1)) == 0;
  return is_power_of_two && raster.band >= 1 && raster.band <= 64;
}

}  // namespace detail

/// Accumulators may be float16 if the operands are; those of integers are int32.
GEMMERY_HOST_DEVICE
constexpr bool is_sm90_accumulator(DType dtype, DType operand) {
  if (is_integer(operand)) return dtype == DType::int32;
  return dtype == DType::float32 || (dtype == DType::float16 && operand == DType::float16);
}

/// The first field of a design that no kernel can be made of, or none.
GEMMERY_HOST_DEVICE
constexpr Sm90Fault find_fault(const Sm90Design& design) {
  using namespace detail;
  if (!are_sm90_operands(design.a, design.b)) return Sm90Fault::operand_type;
  if (!is_sm90_math(design.math, design.a)) return Sm90Fault::math;
  if (!is_sm90_accumulator(design.accumulator, design.a)) return Sm90Fault::accumulator_type;
  if (design.has_c && !is_sm90_output(design.c, design.accumulator, design.a))
    return Sm90Fault::c_type;
  if (!is_sm90_output(design.out, design.accumulator, design.a)) return Sm90Fault::out_type;
  if (design.tile_m % sm90_block_rows != 0 || design.tile_m < 64 || design.tile_m > 320)
    return Sm90Fault::tile_m;
  if (design.tile_n % 16 != 0 || design.tile_n < 16 || design.tile_n > 256)
    return Sm90Fault::tile_n;
  if (!has_column_halves(design)) return Sm90Fault::tile_n;
  if (design.schedule == Schedule::rotation && !is_rotation(design)) return Sm90Fault::schedule;
  if (design.adds_vector && !can_add_vector(design)) return Sm90Fault::addend;
  const bool is_pair = design.cluster_m == 2 || design.cluster_n == 2;
  if (design.cluster_m < 1 || design.cluster_n < 1 || sharing_blocks(design) != (is_pair ? 2 : 1))
    return Sm90Fault::cluster;
  if (!is_split(design)) return Sm90Fault::split_k;
  if (!has_staging_tiles(design)) return Sm90Fault::tile_n;
  if (!is_raster(design.raster)) return Sm90Fault::raster;
  if (held_registers(design) > most_accumulator_registers(design)) return Sm90Fault::accumulators;
  if (design.stages < 2 || design.stages > 8) return Sm90Fault::stages;
  return shared_bytes(design) > sm90_shared_limit ? Sm90Fault::shared_bytes : Sm90Fault::none;
}

GEMMERY_HOST_DEVICE
constexpr bool is_legal(const Sm90Design& design) { return find_fault(design) == Sm90Fault::none; }

}  // namespace gemmery::abi
