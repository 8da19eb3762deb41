// SPDX-License-Identifier: Apache-2.0
// Which sm80 designs are legal, and what makes the others illegal.
#pragma once

#include <device/abi/sm80_design.hpp>

namespace gemmery::abi {

enum class Sm80Fault : unsigned char {
  none,
  operand_types,
  math,
  accumulator,
  mma_k,
  c_type,
  out_type,
  a_vector_bytes,
  b_vector_bytes,
  c_vector_bytes,
  out_vector_bytes,
  tile_m,
  tile_n,
  tile_k,
  warps,
  stages,
  accumulators,
  shared_bytes,
  groups,
  indices,
  convolution,
  scales
};

namespace detail {

GEMMERY_HOST_DEVICE
constexpr bool is_integer_byte(DType dtype) {
  return dtype == DType::int8 || dtype == DType::uint8;
}

GEMMERY_HOST_DEVICE
constexpr bool are_mma_operands(DType a, DType b) {
  if ((is_half(a) && is_code(b)) || (is_code(a) && is_half(b))) return true;
  if (is_integer_byte(a)) return is_integer_byte(b);
  if (is_float8(a)) return is_float8(b);
  return a == b && (a == DType::float16 || a == DType::bfloat16 || a == DType::float32 ||
                    a == DType::float64);
}

GEMMERY_HOST_DEVICE
constexpr bool is_mma_math(DType a, MmaMath math) {
  if (a == DType::float32) return math != MmaMath::native && math != MmaMath::saturate;
  return math == MmaMath::native || (math == MmaMath::saturate && is_integer_byte(a));
}

GEMMERY_HOST_DEVICE
constexpr bool is_mma_accumulator(DType a, DType b, DType accumulator) {
  if (bits_of(a) != bits_of(b)) return accumulator == DType::float32;
  if (a == DType::float64) return accumulator == DType::float64;
  if (is_integer_byte(a)) return accumulator == DType::int32;
  return accumulator == DType::float32 || (a == DType::float16 && accumulator == DType::float16);
}

/// True if the types have an instruction with the design's `mma_k`.
GEMMERY_HOST_DEVICE
constexpr bool has_mma_k(const Sm80Design& design) {
  if (design.mma_k == 0) return true;
  if (is_mixed(design)) return false;
  if (design.accumulator == DType::float64) return design.mma_k == 8 || design.mma_k == 16;
  return design.mma_k == 8 && step_k(design) == 16 && design.accumulator == DType::float32;
}

GEMMERY_HOST_DEVICE
constexpr bool is_mma_output(DType accumulator, DType out) {
  if (out == DType::float32) return true;
  if (accumulator == DType::float64) return out == DType::float64;
  if (accumulator == DType::int32) return out == DType::int32 || is_integer_byte(out);
  return out == DType::float16 || out == DType::bfloat16 || is_float8(out);
}

GEMMERY_HOST_DEVICE
constexpr bool is_vector_of(DType dtype, int bytes) {
  return is_power_of_two(bytes) && bytes >= bytes_of(dtype) && bytes <= chunk_bytes;
}
/// Operands of which one is decoded have adjacent k; elements that share bytes are copied by
/// cp.async alone.
GEMMERY_HOST_DEVICE
constexpr bool has_decoded_layout(const Sm80Design& design) {
  const auto fits = [](DType dtype, int bytes) { return bits_of(dtype) >= 8 || bytes >= 4; };
  return !is_mixed(design) ||
         (design.a_major == Major::k && design.b_major == Major::k &&
          fits(design.a, design.a_vector_bytes) && fits(design.b, design.b_vector_bytes));
}
GEMMERY_HOST_DEVICE
constexpr bool is_vector_or_none(DType dtype, int bytes) {
  return bytes == 0 || is_vector_of(dtype, bytes);
}

/// True if the decoded operand may have these scales.
GEMMERY_HOST_DEVICE
constexpr bool accepts_scales(const Sm80Design& design) {
  const CompanionTypes& scales = design.scales;
  if (!scales.are_used()) return true;
  if (!is_mixed(design) || scales.scale_count < 0 || scales.scale_count > 2) return false;
  const auto is_scale = [](DType dtype) {
    return dtype == DType::float32 || is_half(dtype) || dtype == DType::float8_e8m0fnu ||
           dtype == DType::float8_e4m3fn;
  };
  if (!is_scale(scales.scales[0]) || !is_scale(scales.scales[1])) return false;
  // With 64 accumulators and 64 of a group, two scales, a zero point or a table spilled up to 156
  // bytes (ptxas 13.0).
  if (accumulators_per_thread(design) > 32 &&
      (scales.scale_count > 1 || scales.has_zero_point || scales.has_table))
    return false;
  const DType code = decodes_a(design) ? design.a : design.b;
  if (scales.has_table && (code != DType::uint4 || scales.has_zero_point)) return false;
  return accepts_zero_point(code, scales);
}

/// Groups of codes are found on the device, and have all elements of their rows. With scales 108
/// bytes spilled beside 64 accumulators and 64 of a group of k (ptxas 13.0).
GEMMERY_HOST_DEVICE
constexpr bool can_group_codes(const Sm80Design& design) {
  if (design.scales.are_used() && accumulators_per_thread(design) > 32) return false;
  const bool is_found =
      design.groups == GroupSchedule::device || design.groups == GroupSchedule::persistent;
  return is_found && !design.has_indices && !design.clears_outside;
}

/// True if warps have whole loads of prepared codes, copied by 16 bytes. Groups divide the other
/// operand.
GEMMERY_HOST_DEVICE
constexpr bool accepts_prepared(const Sm80Design& design) {
  if (!design.scales.is_prepared) return true;
  if (!is_mixed(design)) return false;
  const bool is_a = decodes_a(design);
  const int lines = prepared_lines(bits_of(is_a ? design.a : design.b));
  const int vector_bytes = is_a ? design.a_vector_bytes : design.b_vector_bytes;
  return vector_bytes == chunk_bytes &&
         (is_a ? warp_tile_m(design) : warp_tile_n(design)) % lines == 0;
}

/// True if the block has the threads that cp.async needs for a row.
GEMMERY_HOST_DEVICE
constexpr bool fits_copies(const StagedOperand& operand, int threads) {
  return !operand.is_async() || operand.chunks() <= threads;
}

/// True if rows of A that are found by indices have their elements adjacent, and no thread copies
/// chunks of more rows than a register has bits.
GEMMERY_HOST_DEVICE
constexpr bool accepts_indices(const Sm80Design& design) {
  const StagedOperand a = staged_a(design);
  return design.groups != GroupSchedule::none && a.is_k_adjacent &&
         a.rows() * a.chunks() <= 32 * thread_count(design);
}

/// True if channels are adjacent along k in rows of pixels, along the extent elsewhere, and no
/// thread copies chunks of more rows than a register has bits.
GEMMERY_HOST_DEVICE
constexpr bool accepts_windows(const Sm80Design& design) {
  if (design.convolution == ConvolutionKind::none) return !design.has_phases;
  if (design.has_phases &&
      (design.convolution != ConvolutionKind::dgrad || design.split != SplitMode::none))
    return false;
  const StagedOperand a = staged_a(design);
  return design.groups == GroupSchedule::none &&
         (design.dimensions == 2 || design.dimensions == 3) &&
         a.is_k_adjacent == are_rows_pixels(design) &&
         staged_b(design).is_k_adjacent == (design.convolution == ConvolutionKind::fprop) &&
         a.rows() * a.chunks() <= 32 * thread_count(design);
}

/// True if a row has as many chunks as its swizzle permutes.
GEMMERY_HOST_DEVICE
constexpr bool fits_swizzle(const StagedOperand& operand) {
  if (!is_power_of_two(operand.chunks())) return false;
  const ChunkSwizzle swizzle = operand.swizzle();
  return (swizzle.row_mask << swizzle.chunk_shift) < operand.chunks();
}

/// True if 8 to 32 bytes of a block that takes several tiles of groups spilled on sm_90 (ptxas
/// 13.0): float32 that becomes 16 bits, with 128 accumulators, copied by less than 16 bytes.
GEMMERY_HOST_DEVICE
constexpr bool exceeds_registers_of_persistent_block(const Sm80Design& design) {
  return design.groups == GroupSchedule::persistent && splits_to_16_bits(design.math) &&
         accumulators_per_thread(design) >= 128 &&
         (design.a_vector_bytes < 16 || design.b_vector_bytes < 16);
}

}  // namespace detail

/// The first field that makes a design illegal, or none. `shared_limit`: dynamic shared memory of a
/// block.
GEMMERY_HOST_DEVICE
constexpr Sm80Fault find_fault(const Sm80Design& design, int shared_limit = 227 * 1024) {
  using namespace detail;
  if (!are_mma_operands(design.a, design.b)) return Sm80Fault::operand_types;
  if (!is_mma_math(multiplied_type(design), design.math)) return Sm80Fault::math;
  if (!is_mma_accumulator(design.a, design.b, design.accumulator)) return Sm80Fault::accumulator;
  if (!has_mma_k(design)) return Sm80Fault::mma_k;
  if (design.has_c && !is_mma_output(design.accumulator, design.c)) return Sm80Fault::c_type;
  if (!is_mma_output(design.accumulator, design.out)) return Sm80Fault::out_type;
  if (!is_vector_of(design.a, design.a_vector_bytes)) return Sm80Fault::a_vector_bytes;
  if (!is_vector_of(design.b, design.b_vector_bytes)) return Sm80Fault::b_vector_bytes;
  if (!has_decoded_layout(design)) return Sm80Fault::operand_types;
  if (!accepts_prepared(design)) return Sm80Fault::scales;
  if (design.has_c && !is_vector_or_none(design.c, design.c_vector_bytes))
    return Sm80Fault::c_vector_bytes;
  if (!is_vector_or_none(design.out, design.out_vector_bytes)) return Sm80Fault::out_vector_bytes;
  if (!is_power_of_two(design.warps_m) || !is_power_of_two(design.warps_n) ||
      !is_power_of_two(design.warps_k) || warp_count(design) > 32)
    return Sm80Fault::warps;
  const MmaShape mma = mma_shape(design);
  if (!is_power_of_two(design.tile_m) || design.tile_m > 256 || warp_tile_m(design) < 16 ||
      warp_tile_m(design) % mma.m != 0)
    return Sm80Fault::tile_m;
  // Fragments of B are loaded for 16 columns at a time.
  if (!is_power_of_two(design.tile_n) || design.tile_n > 256 || warp_tile_n(design) < 16)
    return Sm80Fault::tile_n;
  // Fragments are double-buffered in registers.
  if (!is_power_of_two(design.tile_k) || k_steps(design) < 2 || k_steps(design) > 8 ||
      !fits_swizzle(staged_a(design)) || !fits_swizzle(staged_b(design)))
    return Sm80Fault::tile_k;
  if (design.stages < 2 || design.stages > 12) return Sm80Fault::stages;
  const int threads = thread_count(design);
  if (threads_per_row(design) > threads || !fits_copies(staged_a(design), threads) ||
      !fits_copies(staged_b(design), threads))
    return Sm80Fault::warps;
  const int words = accumulators_per_thread(design) * accumulator_bytes(design) / 4;
  if (words > 128) return Sm80Fault::accumulators;
  if (shared_bytes(design) > shared_limit) return Sm80Fault::shared_bytes;
  const bool has_groups = design.groups != GroupSchedule::none;
  if (has_groups ? design.split != SplitMode::none : design.clears_outside)
    return Sm80Fault::groups;
  if (design.groups == GroupSchedule::list && (design.has_indices || design.clears_outside))
    return Sm80Fault::groups;
  if (exceeds_registers_of_persistent_block(design)) return Sm80Fault::groups;
  if (!accepts_scales(design)) return Sm80Fault::scales;
  if (has_groups && is_mixed(design) && !can_group_codes(design)) return Sm80Fault::groups;
  if (!accepts_windows(design) || (is_mixed(design) && design.convolution != ConvolutionKind::none))
    return Sm80Fault::convolution;
  return design.has_indices && !accepts_indices(design) ? Sm80Fault::indices : Sm80Fault::none;
}

GEMMERY_HOST_DEVICE
constexpr bool is_legal(const Sm80Design& design) { return find_fault(design) == Sm80Fault::none; }

}  // namespace gemmery::abi
