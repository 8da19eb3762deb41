// SPDX-License-Identifier: Apache-2.0
// The legality of sm90 designs: finds the first field that is not legal.
#pragma once

#include <device/abi/sm90_shared.hpp>

namespace gemmery::abi {

inline constexpr int rotation_tile = 128;  // rows and columns of a tile in rotation

enum class Sm90Fault : unsigned char {
  none,
  operand_type,
  math,
  accumulator_type,
  c_type,
  out_type,
  registers,
  tile_m,
  tile_n,
  schedule,
  addend,
  cluster,
  split_k,
  raster,
  accumulators,
  groups,
  convolution,
  scales,
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
/// wgmma multiplies 8-bit operands of different types, too, if both are integers or both are
/// floats; codes are decoded to the other operand's type.
GEMMERY_HOST_DEVICE
constexpr bool are_sm90_operands(DType a, DType b) {
  if (is_half(b) && is_code(a)) return true;
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
    case MmaMath::tf32x3:
    case MmaMath::bf16x3:
    case MmaMath::bf16x6:
    case MmaMath::bf16x9:
      return operand == DType::float32;
    case MmaMath::saturate:
      return is_wgmma_integer(operand);
    case MmaMath::promoted:
      return is_wgmma_byte_float(operand);
    default:
      return false;
  }
}

/// Types of C that the epilogue supports for an accumulator type.
GEMMERY_HOST_DEVICE
constexpr bool is_sm90_addend(DType dtype, DType accumulator, DType operand) {
  if (dtype == DType::float32) return true;
  if (is_integer(accumulator)) return dtype == DType::int32 || is_wgmma_integer(dtype);
  return is_half(dtype) || (is_wgmma_byte_float(operand) && is_wgmma_byte_float(dtype));
}
/// Those of out.
GEMMERY_HOST_DEVICE
constexpr bool is_sm90_output(DType dtype, DType accumulator, DType operand) {
  return is_sm90_addend(dtype, accumulator, operand) ||
         (is_half(operand) && is_wgmma_byte_float(dtype));
}

/// A register operand has codes and is K-major, or has 8 bits and is not. Of 8 bits, only kernels
/// with the default program handle its order of rows, and blocks that split k would add up
/// accumulators of different orders; stores by pairs of rows need an out that begins at a whole
/// pair. Codes are also stored one by one: they have no other design.
GEMMERY_HOST_DEVICE
constexpr bool has_register_operand(const Sm90Design& design) {
  if (!design.a_by_registers) return !design.has_adjacent_rows && !decodes_a(design);
  const bool has_type = decodes_a(design) ? design.a_major == Major::k
                                          : bytes_of(design.a) == 1 && design.a_major != Major::k;
  if (decodes_a(design)) return has_type && design.schedule != Schedule::rotation;
  const bool is_fitting = has_type && design.split_k == 1 && design.split == SplitMode::none &&
                          design.program_bytes == 0 && design.schedule != Schedule::rotation;
  return is_fitting && (!design.has_adjacent_rows || design.out_access >= 2 * bytes_of(design.out));
}

/// If consumers share a tile by columns, the columns of the second one must begin at a row of B at
/// which the swizzle repeats (every 8th), or at an atom.
GEMMERY_HOST_DEVICE
constexpr bool has_column_halves(const Sm90Design& design) {
  if (!splits_columns(design)) return true;
  const DType multiplied = multiplied_type(design.math, design.b);
  const bool is_in_rows = multiplied_major(multiplied, design.b_major) == Major::k;
  return design.tile_n % (is_in_rows ? 32 : 2 * atom_extent(design)) == 0;
}

/// A row of a staging tile has at least 32 bytes.
GEMMERY_HOST_DEVICE
constexpr bool has_staging_tiles(const Sm90Design& design) {
  return columns_per_consumer(stored_design(design)) * bytes_of(design.out) % 32 == 0;
}

/// A portable cluster has at most 8 blocks, and each stores a multiple of 16 columns. Splits within
/// a cluster are not combined with blocks that share operands, nor with warpgroups that take tiles
/// in turn, which are for many tiles. Splits through the workspace are not combined with rotation,
/// and only `parallel` is combined with a split within a cluster: the others are for other
/// problems. Saturating accumulators are never split: partial ones clamp elsewhere than those of
/// all k.
GEMMERY_HOST_DEVICE
constexpr bool is_split(const Sm90Design& design) {
  const int blocks = design.split_k;
  const bool has_parts = design.split != SplitMode::none;
  if (blocks == 1 && !has_parts) return true;
  if (design.math == MmaMath::saturate) return false;
  if (blocks == 1) return design.schedule != Schedule::rotation;
  if (has_parts && design.split != SplitMode::parallel) return false;
  return (blocks == 2 || blocks == 4 || blocks == 8) && sharing_blocks(design) == 1 &&
         design.schedule == Schedule::cooperative && !splits_columns(design) &&
         design.tile_n % (16 * blocks) == 0;
}

/// The registers of a consumer for its accumulators. With 512 threads a kernel starts with 128
/// registers each, of which one wgmma may not fill more than 96 (ptxas 13.0, C7602), and 80 spill
/// with a C, or codes, and the accumulators of other blocks. Otherwise these spill (ptxas 13.0):
///
///   with C, in turns           2 to 5 registers at 208 accumulators, 15 at 192 pairs in float16
///   with C, clusters along n   7 at 192, not in turns
///   with C in float32          up to 7 if wgmmas have 192 columns and out has 16 bits, in turns or
///                              without a cluster; 1 at 208 without a cluster
///   without C, in turns        1 at 200 pairs in float16
///   with C, operands of 8 bits 8 to 172 at 192, if out has 8 bits or A and B are transposed
///   A through registers        7 to 55 at 192 promoted ones; others serialise wgmmas at 192
///   parts of tiles             2 to 6 at 208, up to 18 at 156 pairs in float16, when values of C++
///                              carried them; 5 at 192 in turns with a C, 4 in clusters; operands
///                              of 8 bits 6 to 12 at 192, 1 to 6 at 128 of one consumer, 4 at 64 of
///                              three with a C; transposed ones of 32 bits 9 at 128, 38 at 144, 220
///                              at 96 and 22 at 64 of three; of codes none at 128; float32 split
///                              into parts 3 to 5 at 128 of one consumer, 3 to 10 of two in bf16x3
GEMMERY_HOST_DEVICE
constexpr int most_registers_beside_parts(const Sm90Design& design) {
  if (design.split == SplitMode::none) return 208;
  if (decodes_a(design)) return 128;
  if (design.accumulator == DType::float16) return 128;
  const bool is_alone = consumer_count(design) == 1;
  if (splits_operands(design.math)) {
    if (consumers_per_tile(design) == 3) return 64;
    return is_alone || design.math == MmaMath::bf16x3 ? 112 : 128;
  }
  const bool transposes =
      is_transposed(design.a, design.a_major) || is_transposed(design.b, design.b_major);
  const bool are_three = consumers_per_tile(design) == 3;
  switch (bytes_of(design.b)) {
    case 1:
      if (is_alone) return 112;
      return !design.has_c ? 160 : are_three ? 48 : 112;
    case 4:
      return !transposes ? 192 : are_three ? 48 : 96;
    default:
      return (design.has_c && takes_turns(design)) || sharing_blocks(design) > 1 ? 184 : 192;
  }
}
GEMMERY_HOST_DEVICE
constexpr int most_registers_beside_stores(const Sm90Design& design) {
  const bool is_wide_c = design.has_c && bytes_of(design.c) == 4;
  const bool narrows_c = is_wide_c && bytes_of(design.out) == 2;
  if (consumers_per_tile(design) == 3) {
    // 1 register spills with 96 accumulators if both operands are transposed as well.
    if (narrows_c && design.a_by_registers && transposes_b(design) && !is_promoted(design))
      return 88;
    return design.split_k > 1 && (design.has_c || decodes_a(design)) ? 72 : 96;
  }
  const bool takes_turns = abi::takes_turns(design);
  if (splits_operands(design.math)) return design.has_c ? 160 : takes_turns ? 176 : 192;
  const bool has_half_sums = design.accumulator == DType::float16;
  // 3 registers spill with 144 accumulators and a C of 32 bits (192x96, ping-pong).
  if (design.a_by_registers) return design.has_c && takes_turns ? 128 : 160;
  // Without a C, 16 registers spill with 192 accumulators if out has 8 bits (192x128, ping-pong).
  const bool is_narrow = bytes_of(design.out) == 1;
  if (!design.has_c) return is_narrow ? 160 : takes_turns && has_half_sums ? 192 : 208;
  if (bytes_of(design.b) == 1 || is_narrow) return 160;
  const bool narrows_wide = narrows_c && columns_per_consumer(design) == 192;
  if (!takes_turns) {
    if (design.cluster_n == 2) return 184;
    if (!is_wide_c || design.cluster_m == 2) return 208;
    return narrows_wide ? 184 : 200;
  }
  if (narrows_wide) return 184;
  return has_half_sums ? 184 : 200;
}

/// The limit for kernels that transpose 32-bit words with accumulators: 570 to 1650 bytes spill at
/// 160, 256 at 128 with a C, 184 at 96 of three consumers.
GEMMERY_HOST_DEVICE
constexpr int most_registers_beside_transposition(const Sm90Design& design) {
  const bool transposes_words =
      bytes_of(design.b) == 4 &&
      (is_transposed(design.a, design.a_major) || is_transposed(design.b, design.b_major));
  if (!transposes_words) return 208;
  if (consumers_per_tile(design) == 3) return design.has_c ? 64 : 80;
  return design.has_c ? 112 : 128;
}

/// The limit if the blocks of a cluster split k. With transposed words of 32 bits 84 to 1056 bytes
/// spill at 96 and more, 108 to 860 at 64 of three consumers; with operands of 8 bits and a C up to
/// 460 at 128, transposed ones 44 at 96 and 60 at 64 of three, integers 80 there; without a C
/// transposed ones 8 at 112 and 84 at 128, promoted ones 32 at 192, and integers 4 at 64 of three
/// in clusters of four. Of codes 792 spill at 160 with a C, 40 to 92 at 128 in two blocks of rows;
/// of float16 pairs 24 at 96 if out has 8 bits.
GEMMERY_HOST_DEVICE
constexpr int most_registers_beside_cluster_parts(const Sm90Design& design) {
  if (design.split_k == 1 || splits_operands(design.math)) return 208;
  if (decodes_a(design)) return design.has_c || blocks_per_consumer(design) > 1 ? 112 : 128;
  const bool transposes =
      is_transposed(design.a, design.a_major) || is_transposed(design.b, design.b_major);
  const bool are_three = consumers_per_tile(design) == 3;
  switch (bytes_of(design.b)) {
    case 1:
      if (!design.has_c) {
        if (!transposes) return 208;
        if (are_three && is_integer(design.accumulator) && design.split_k == 4) return 48;
        return design.math == MmaMath::promoted ? 160 : 96;
      }
      if (are_three && (transposes || is_integer(design.accumulator))) return 48;
      return transposes ? 80 : 112;
    case 4:
      return !transposes ? 208 : are_three ? 48 : 80;
    default:
      return design.accumulator == DType::float16 && bytes_of(design.out) == 1 ? 80 : 208;
  }
}

/// The limit if clusters that split k also split it through the workspace: none for three consumers
/// (292 bytes spill of integers at 64) and for codes (28 at 64 of three, 20 at 32 with a C).
/// Integers spill 4 to 32 at 64 and 8 at 112 of one consumer, 8-bit floats with a C 168 at 96,
/// bf16x9 276 at 128.
GEMMERY_HOST_DEVICE
constexpr int most_registers_beside_both_parts(const Sm90Design& design) {
  if (design.split_k == 1 || design.split == SplitMode::none) return 208;
  if (decodes_a(design) || consumers_per_tile(design) == 3) return 0;
  const bool transposes =
      is_transposed(design.a, design.a_major) || is_transposed(design.b, design.b_major);
  const bool transposes_words = bytes_of(design.b) == 4 && transposes;
  if (is_integer(design.accumulator) || transposes_words) return 48;
  if (splits_operands(design.math)) return 64;
  return bytes_of(design.b) == 1 && design.has_c ? 64 : 208;
}

/// The limit beside scales, which are read as they are used: 64 bytes spilled at 192 with both
/// operands transposed; of codes in two blocks of rows 4 at 128 with a zero point and a C.
GEMMERY_HOST_DEVICE
constexpr int most_registers_beside_scales(const Sm90Design& design) {
  if (!has_scales(design)) return 208;
  if (!decodes_a(design)) return 160;
  const bool has_more = design.has_c || design.a_scales.has_zero_point;
  return blocks_per_consumer(design) > 1 && has_more ? 112 : 128;
}

/// The limit where consumers store pixels of a phase, or the columns of padded taps: 12 to 136
/// bytes spill at 192, of transposed words of 32 bits 56 to 80 at 80 of three, of parts of 8-bit
/// operands 8 at 128.
GEMMERY_HOST_DEVICE
constexpr int most_registers_beside_pixels(const Sm90Design& design) {
  if (!design.has_phases && !design.has_tap_columns) return 208;
  if (bytes_of(design.b) == 4 && consumers_per_tile(design) == 3) return 64;
  return bytes_of(design.b) == 1 && design.split != SplitMode::none ? 112 : 160;
}

GEMMERY_HOST_DEVICE
constexpr int most_accumulator_registers(const Sm90Design& design) {
  int most = most_registers_beside_stores(design);
  for (const int registers :
       {most_registers_beside_parts(design), most_registers_beside_transposition(design),
        most_registers_beside_cluster_parts(design), most_registers_beside_both_parts(design),
        most_registers_beside_scales(design), most_registers_beside_pixels(design)})
    if (registers < most) most = registers;
  return most;
}

/// A thread of 160 registers holds at most 128 accumulators. A smaller tile needs more L2
/// bandwidth; a tile whose columns are not a multiple of a staging tile's 64 takes a third more
/// instructions (128x112). Rotation reads no C: a program reads its inputs in other ways.
GEMMERY_HOST_DEVICE
constexpr bool is_rotation(const Sm90Design& design) {
  return design.tile_m == rotation_tile && design.tile_n == rotation_tile && !design.has_c &&
         design.split_k == 1;
}

/// The vector is added as one more product over 16 k. That costs the tensor cores a k of 16 and
/// saves the epilogue two instructions per element. It pays off in rotation, where a tile waits for
/// the epilogue.
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

/// With a scatter and transposed words of 32 bits 8 bytes spill at 128 accumulators, 176 to 200 at
/// 64 accumulators of three consumers; of integers with a C 32 at 128 in two blocks of rows.
GEMMERY_HOST_DEVICE
constexpr bool can_scatter_rows(const Sm90Design& design) {
  const bool transposes_words =
      bytes_of(design.b) == 4 && (transposes_a(design) || transposes_b(design));
  const int held = held_registers(design);
  if (transposes_words && (held > 96 || consumers_per_tile(design) == 3)) return false;
  const bool adds_to_integers = is_integer(design.accumulator) && design.has_c;
  if (adds_to_integers && held > 112 && blocks_per_consumer(design) > 1) return false;
  return !design.has_group_table && !design.clears_outside && !design.has_adjacent_rows;
}

/// Phases differ in their blocks of k, so consumers share each tile; TMA stores their pixels.
GEMMERY_HOST_DEVICE
constexpr bool can_have_phases(const Sm90Design& design) {
  return design.conv == Sm90Conv::dgrad && design.schedule == Schedule::cooperative &&
         design.split_k == 1 && design.split == SplitMode::none && stores_by_tma(design);
}

/// If taps have padded columns, TMA stores the columns that exist in out.
GEMMERY_HOST_DEVICE
constexpr bool can_have_tap_columns(const Sm90Design& design) {
  return finds_columns(design) && stores_by_tma(design) && !design.has_c &&
         design.schedule != Schedule::rotation;
}

/// A gather needs a K-major A.
GEMMERY_HOST_DEVICE
constexpr bool can_gather_rows(const Sm90Design& design) {
  return design.a_major == Major::k && !design.has_group_table;
}

/// Problems of a list have matrices of out at any addresses, to which threads store, and the
/// default program.
GEMMERY_HOST_DEVICE
constexpr bool can_take_list(const Sm90Design& design) {
  return !design.has_group_table && !design.clears_outside && !design.scatters_rows &&
         !design.gathers_rows && !design.has_adjacent_rows && !stores_by_tma(design) &&
         design.out_access > 0 && design.has_any_c == design.has_c && design.program_bytes == 0;
}

/// Filters of fprop and channels of images are K-major; filters of dgrad, and both operands of
/// wgrad, are not. A copy of wgrad's B takes an atom of channels, which may not begin in the middle
/// of an atom: the rest of it would belong to the next tap.
GEMMERY_HOST_DEVICE
constexpr bool is_sm90_conv(const Sm90Design& design) {
  if (design.conv == Sm90Conv::none)
    return design.dimensions == 0 && !design.has_phases && !design.has_tap_columns;
  if (design.has_phases && !can_have_phases(design)) return false;
  if (design.has_tap_columns && !can_have_tap_columns(design)) return false;
  const bool has_whole_atoms = !finds_columns(design) || design.tile_n % atom_extent(design) == 0 ||
                               atom_extent(design) % design.tile_n == 0;
  return design.dimensions >= 1 && design.dimensions <= 3 && has_whole_atoms &&
         !design.has_pointers && !design.has_groups && !design.a_by_registers &&
         (design.a_major == Major::k) == finds_rows(design) &&
         (design.b_major == Major::k) == (design.conv == Sm90Conv::fprop);
}

/// Scales and zero points of codes: those of their own rows, of parts of whole wgmmas.
GEMMERY_HOST_DEVICE
constexpr bool can_scale_codes(const Sm90Design& design) {
  const int least_k = scales_codes(design) ? 16 : 32;
  return design.scale_vectors == ScaleVectors::rows && design.scaled_k >= least_k &&
         tile_k(design) % design.scaled_k == 0 && design.a_scales.varies_by_block() &&
         !design.a_scales.has_table && !design.a_scales.is_prepared &&
         !design.b_scales.are_used() && accepts_zero_point(design.a, design.a_scales);
}

/// Scales multiply promoted products; three warps that are idle in other kernels load them. A
/// register operand is multiplied whole, unless it has codes.
GEMMERY_HOST_DEVICE
constexpr bool can_scale(const Sm90Design& design) {
  if (!has_scales(design))
    return design.scaled_k == 0 && !design.a_scales.are_used() && !design.b_scales.are_used();
  if (decodes_a(design) && !can_scale_codes(design)) return false;
  const bool has_part = design.scaled_k == 32 || design.scaled_k == 64 || design.scaled_k == 128;
  const bool is_taken = design.gathers_rows || design.scatters_rows || design.has_list ||
                        design.has_group_table || design.conv != Sm90Conv::none;
  if (decodes_a(design)) return !is_taken;
  return design.math == MmaMath::promoted && has_part && !is_taken &&
         design.schedule != Schedule::rotation && !design.a_scales.has_zero_point &&
         !design.b_scales.has_zero_point &&
         (design.a_scales.are_used() || design.b_scales.are_used()) &&
         (!design.a_by_registers || design.scaled_k == tile_k(design));
}

/// Of register operands, only codes are those of groups, which divide rows or columns alone: rows
/// by index and lists have kernels of other operands. 24 bytes spill with a zero point and a C in
/// two blocks of rows (256x32, ptxas 13.0).
GEMMERY_HOST_DEVICE
constexpr bool takes_groups_by_registers(const Sm90Design& design) {
  if (!design.a_by_registers) return true;
  const bool is_tight =
      design.has_c && design.a_scales.has_zero_point && blocks_per_consumer(design) > 1;
  return decodes_a(design) && !is_tight && !design.has_list && !design.gathers_rows &&
         !design.scatters_rows;
}

/// Groups need a block without a cluster and consumers that share each tile. The group's ends and
/// the tile's place need registers that more than 128 accumulators do not leave.
GEMMERY_HOST_DEVICE
constexpr bool can_find_groups(const Sm90Design& design) {
  return design.schedule == Schedule::cooperative && !splits_columns(design) &&
         cluster_size(design) == 1 && design.split == SplitMode::none && !design.adds_vector &&
         !design.has_pointers && takes_groups_by_registers(design) &&
         held_registers(design) <= 128 && (!design.has_list || can_take_list(design)) &&
         (!design.scatters_rows || can_scatter_rows(design)) &&
         (!design.gathers_rows || can_gather_rows(design));
}

}  // namespace detail

/// Accumulators may be float16 if the operands are; those of integers are int32.
GEMMERY_HOST_DEVICE
constexpr bool is_sm90_accumulator(DType dtype, DType operand) {
  if (is_integer(operand)) return dtype == DType::int32;
  return dtype == DType::float32 || (dtype == DType::float16 && operand == DType::float16);
}

/// The first field that makes a design illegal, or none.
GEMMERY_HOST_DEVICE
constexpr Sm90Fault find_fault(const Sm90Design& design) {
  using namespace detail;
  if (!are_sm90_operands(design.a, design.b)) return Sm90Fault::operand_type;
  if (!is_sm90_math(design.math, design.b)) return Sm90Fault::math;
  if (!is_sm90_accumulator(design.accumulator, design.b) ||
      (decodes_a(design) && design.accumulator != DType::float32))
    return Sm90Fault::accumulator_type;
  if (design.has_c && !is_sm90_addend(design.c, design.accumulator, design.b))
    return Sm90Fault::c_type;
  if (!is_sm90_output(design.out, design.accumulator, design.b)) return Sm90Fault::out_type;
  if (!has_register_operand(design)) return Sm90Fault::registers;
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
  const bool has_group_work =
      design.has_list || design.clears_outside || design.scatters_rows || design.gathers_rows;
  if (design.has_groups ? !can_find_groups(design) : has_group_work) return Sm90Fault::groups;
  if (!is_sm90_conv(design)) return Sm90Fault::convolution;
  if (!can_scale(design)) return Sm90Fault::scales;
  if (design.stages < 2 || design.stages > 8) return Sm90Fault::stages;
  return shared_bytes(design) > sm90_shared_limit ? Sm90Fault::shared_bytes : Sm90Fault::none;
}

GEMMERY_HOST_DEVICE
constexpr bool is_legal(const Sm90Design& design) { return find_fault(design) == Sm90Fault::none; }

}  // namespace gemmery::abi
