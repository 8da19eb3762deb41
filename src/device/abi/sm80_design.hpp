// SPDX-License-Identifier: Apache-2.0
// The design of an sm80 kernel and the values that follow from it: warps, the mma instruction
// and shared memory. sm80_faults.hpp says which are legal.
#pragma once

#include <device/abi/companions.hpp>
#include <device/abi/conv_phases.hpp>
#include <device/abi/dtype.hpp>
#include <device/abi/group_schedule.hpp>
#include <device/abi/host_device.hpp>
#include <device/abi/major.hpp>
#include <device/abi/mma_math.hpp>
#include <device/abi/power_of_two.hpp>
#include <device/abi/raster.hpp>
#include <device/abi/split.hpp>
#include <device/abi/staged_operand.hpp>
#include <device/abi/window_params.hpp>

namespace gemmery::abi {

/// out is row major, or neither of its indices is adjacent; the host transposes a problem with a
/// column-major out into out^T = B^T A^T.
struct Sm80Design {
  DType a;
  DType b;
  DType c;
  DType out;
  DType accumulator;
  MmaMath math;
  Major a_major;
  Major b_major;
  int a_vector_bytes;  // of the widest access along the adjacent index
  int b_vector_bytes;
  int c_vector_bytes;  // along columns; 0 if they are not adjacent
  int out_vector_bytes;
  int tile_m;
  int tile_n;
  int tile_k;
  int warps_m;
  int warps_n;
  int warps_k;  // groups of warps that split each block of k (sliced-K)
  int stages;   // blocks of k in shared memory at once
  SplitMode split;
  Raster raster;
  bool has_c;
  // The instruction's k; 0: the default. 16-bit types: 8 selects two m16n8k8 for each step of
  // fragments instead of one m16n8k16. float64: 8 and 16 select m16n8k8 and m16n8k16 (sm_90 and
  // later) instead of m8n8k4.
  int mma_k = 0;
  GroupSchedule groups = GroupSchedule::none;  // of grouped products, whose k no blocks share
  bool has_indices = false;                    // rows of A and out are found by indices
  bool clears_outside = false;                 // what belongs to no group becomes zero
  ConvolutionKind convolution = ConvolutionKind::none;
  int dimensions = 0;          // of a convolution's images: 2 (or 1), or 3
  bool has_phases = false;     // a dgrad with a stride
  CompanionTypes scales = {};  // of the operand that is decoded

  bool operator==(const Sm80Design&) const = default;
};

/// mma.sync's shape.
struct MmaShape {
  int m;
  int n;
  int k;
};

GEMMERY_HOST_DEVICE
constexpr bool splits_to_float16(MmaMath math) {
  return math == MmaMath::f16x3 || math == MmaMath::f16;
}
GEMMERY_HOST_DEVICE
constexpr bool splits_to_16_bits(MmaMath math) {
  return math == MmaMath::bf16x3 || math == MmaMath::bf16 || splits_to_float16(math);
}

/// True if one operand has 16-bit floats and the other one codes that are decoded to their type.
GEMMERY_HOST_DEVICE
constexpr bool decodes_a(const Sm80Design& design) {
  return is_code(design.a) && is_half(design.b);
}
GEMMERY_HOST_DEVICE
constexpr bool decodes_b(const Sm80Design& design) {
  return is_half(design.a) && is_code(design.b);
}
GEMMERY_HOST_DEVICE
constexpr bool is_mixed(const Sm80Design& design) { return decodes_a(design) || decodes_b(design); }
/// The type of A in the instruction.
GEMMERY_HOST_DEVICE
constexpr DType multiplied_type(const Sm80Design& design) {
  return decodes_a(design) ? design.b : design.a;
}

/// True if adjacent k are decoded together: codes of 8 bits, those with a table, and those whose
/// order is prepared for it.
GEMMERY_HOST_DEVICE
constexpr bool decodes_adjacent_k(const Sm80Design& design) {
  return design.scales.has_table || design.scales.is_prepared ||
         bits_of(decodes_a(design) ? design.a : design.b) == 8;
}

/// True if the scale multiplies decoded codes instead of the sums of a group of k.
GEMMERY_HOST_DEVICE
constexpr bool scales_codes(const Sm80Design& design) {
  return scale_decoded(decodes_a(design) ? design.a : design.b, design.scales);
}

/// Values of k in one step of fragments: of codes those of two instructions.
GEMMERY_HOST_DEVICE
constexpr int step_k(const Sm80Design& design) {
  if (is_mixed(design)) return 32;
  if (design.accumulator == DType::float64) return design.mma_k > 0 ? design.mma_k : 4;
  return splits_to_16_bits(design.math) ? 16 : 32 / bytes_of(design.a);
}

/// The instruction.
GEMMERY_HOST_DEVICE
constexpr MmaShape mma_shape(const Sm80Design& design) {
  const int k = design.mma_k > 0 ? design.mma_k : is_mixed(design) ? 16 : step_k(design);
  if (design.accumulator == DType::float64 && k == 4) return {.m = 8, .n = 8, .k = k};
  return {.m = 16, .n = 8, .k = k};
}

/// True if the instruction is a float64 mma that exists from sm_90 on.
GEMMERY_HOST_DEVICE
constexpr bool needs_sm90_mma(const Sm80Design& design) {
  return design.accumulator == DType::float64 && mma_shape(design).m == 16;
}

GEMMERY_HOST_DEVICE
constexpr int warp_count(const Sm80Design& design) {
  return design.warps_m * design.warps_n * design.warps_k;
}
GEMMERY_HOST_DEVICE
constexpr int thread_count(const Sm80Design& design) { return warp_count(design) * 32; }
GEMMERY_HOST_DEVICE
constexpr int warp_tile_m(const Sm80Design& design) { return design.tile_m / design.warps_m; }
GEMMERY_HOST_DEVICE
constexpr int warp_tile_n(const Sm80Design& design) { return design.tile_n / design.warps_n; }
/// A warp's share of the k of one stage.
GEMMERY_HOST_DEVICE
constexpr int warp_tile_k(const Sm80Design& design) { return design.tile_k / design.warps_k; }
/// True if a convolution's rows of A are pixels, and k runs over their taps.
GEMMERY_HOST_DEVICE
constexpr bool are_rows_pixels(const Sm80Design& design) {
  return design.convolution == ConvolutionKind::fprop ||
         design.convolution == ConvolutionKind::dgrad;
}
/// True if lines of B are found by pixel or tap.
GEMMERY_HOST_DEVICE
constexpr bool has_window_of_b(const Sm80Design& design) {
  return design.convolution == ConvolutionKind::dgrad ||
         design.convolution == ConvolutionKind::wgrad;
}

/// True if rows of a tile are not adjacent in out.
GEMMERY_HOST_DEVICE
constexpr bool finds_rows_of_out(const Sm80Design& design) {
  return design.has_indices || design.has_phases;
}

/// Steps of fragments in a warp's share of one stage.
GEMMERY_HOST_DEVICE
constexpr int k_steps(const Sm80Design& design) { return warp_tile_k(design) / step_k(design); }

GEMMERY_HOST_DEVICE
constexpr FragmentLoad fragment_load(const Sm80Design& design, DType dtype, Major major) {
  if (is_mixed(design))
    return !is_code(dtype)             ? FragmentLoad::chunks
           : design.scales.is_prepared ? FragmentLoad::prepared
           : bits_of(dtype) == 8       ? FragmentLoad::codes
                                       : FragmentLoad::nibbles;
  if (dtype == DType::float64) return major == Major::k ? FragmentLoad::pairs : FragmentLoad::words;
  if (splits_to_16_bits(design.math))
    return major == Major::k ? FragmentLoad::pairs : FragmentLoad::split_words;
  if (major == Major::k || bytes_of(dtype) == 1) return FragmentLoad::matrices;
  return bytes_of(dtype) == 2 ? FragmentLoad::transposed_matrices : FragmentLoad::words;
}

GEMMERY_HOST_DEVICE
constexpr StagedOperand staged_a(const Sm80Design& design) {
  return {.dtype = design.a,
          .is_k_adjacent = design.a_major == Major::k,
          .vector_bytes = design.a_vector_bytes,
          .extent = design.tile_m,
          .k = design.tile_k,
          .load = fragment_load(design, design.a, design.a_major)};
}
GEMMERY_HOST_DEVICE
constexpr StagedOperand staged_b(const Sm80Design& design) {
  return {.dtype = design.b,
          .is_k_adjacent = design.b_major == Major::k,
          .vector_bytes = design.b_vector_bytes,
          .extent = design.tile_n,
          .k = design.tile_k,
          .load = fragment_load(design, design.b, design.b_major)};
}

GEMMERY_HOST_DEVICE
constexpr int stage_bytes(const Sm80Design& design) {
  return staged_a(design).bytes() + staged_b(design).bytes();
}

/// Bytes of an accumulator in memory. float16 accumulators are stored as float32.
GEMMERY_HOST_DEVICE
constexpr int accumulator_bytes(const Sm80Design& design) {
  return design.accumulator == DType::float64 ? 8 : 4;
}

/// Accumulators of one thread.
GEMMERY_HOST_DEVICE
constexpr int accumulators_per_thread(const Sm80Design& design) {
  return warp_tile_m(design) * warp_tile_n(design) / 32;
}

// --- the epilogue's staging tile -----------------------------------------------------------------

/// Rows of out that every warp writes to the staging tile at a time: those of one mma.
GEMMERY_HOST_DEVICE
constexpr int staging_block_rows(const Sm80Design& design) { return mma_shape(design).m; }
GEMMERY_HOST_DEVICE
constexpr int staging_rows(const Sm80Design& design) {
  return staging_block_rows(design) * design.warps_m;
}
/// Bytes from row to row. The padding puts the eight rows that a store of fragments covers into
/// different banks.
GEMMERY_HOST_DEVICE
constexpr int staging_pitch(const Sm80Design& design) {
  return design.tile_n * accumulator_bytes(design) + 8 * accumulator_bytes(design);
}
GEMMERY_HOST_DEVICE
constexpr int staging_bytes(const Sm80Design& design) {
  return staging_rows(design) * staging_pitch(design);
}

/// Adjacent columns of a row that one thread finishes: 16 bytes of accumulators, or more if a warp
/// could not cover a row otherwise.
GEMMERY_HOST_DEVICE
constexpr int finished_columns(const Sm80Design& design) {
  const int least = chunk_bytes / accumulator_bytes(design);
  return design.tile_n > 32 * least ? design.tile_n / 32 : least;
}
GEMMERY_HOST_DEVICE
constexpr int threads_per_row(const Sm80Design& design) {
  return design.tile_n / finished_columns(design);
}

/// Shared memory through which groups of warps add up their accumulators, one group at a time.
GEMMERY_HOST_DEVICE
constexpr int slice_bytes(const Sm80Design& design) {
  return design.warps_k > 1 ? design.tile_m * design.tile_n * accumulator_bytes(design) : 0;
}

/// Shared memory for partial reductions of the columns and of the tile.
GEMMERY_HOST_DEVICE
constexpr int reduction_bytes(const Sm80Design& design) {
  const int compute_bytes = design.accumulator == DType::int32 ? 8 : accumulator_bytes(design);
  return thread_count(design) * finished_columns(design) * compute_bytes;
}

/// Shared memory of a tile: the mainloop and the epilogue use it in turn.
GEMMERY_HOST_DEVICE
constexpr int phase_bytes(const Sm80Design& design) {
  int most = stage_bytes(design) * design.stages;
  for (const int bytes : {staging_bytes(design), slice_bytes(design), reduction_bytes(design)})
    if (bytes > most) most = bytes;
  return most;
}

/// A grouped kernel keeps its current tile after that.
inline constexpr int kept_group_tile_bytes = 48;
GEMMERY_HOST_DEVICE
constexpr int kept_group_tile_offset(const Sm80Design& design) {
  return (phase_bytes(design) + 15) / 16 * 16;
}

/// After the tile: for each of its rows the row of A and of out, if these are found by indices.
GEMMERY_HOST_DEVICE
constexpr int kept_rows_offset(const Sm80Design& design) {
  return kept_group_tile_offset(design) + kept_group_tile_bytes;
}

/// After the tile: the offset of each of its rows' pixels, then the coordinates of all of them
/// along each dimension; if elements of A are loaded one by one, the same of the taps of a block's
/// k.
GEMMERY_HOST_DEVICE
constexpr int kept_pixels_bytes(const Sm80Design& design) {
  const int kept = design.tile_m + (staged_a(design).is_async() ? 0 : design.tile_k);
  return are_rows_pixels(design) ? kept * (8 + 4 * design.dimensions) : 0;
}
GEMMERY_HOST_DEVICE
constexpr int kept_pixels_offset(const Sm80Design& design) {
  return (phase_bytes(design) + 15) / 16 * 16;
}

/// With phases: the phase's windows and the row of out for each row of the tile follow.
GEMMERY_HOST_DEVICE
constexpr int kept_phase_offset(const Sm80Design& design) {
  return kept_pixels_offset(design) + (kept_pixels_bytes(design) + 15) / 16 * 16;
}

GEMMERY_HOST_DEVICE
constexpr int shared_bytes(const Sm80Design& design) {
  if (design.has_phases) return kept_phase_offset(design) + kept_phase_bytes + 4 * design.tile_m;
  if (design.convolution != ConvolutionKind::none)
    return kept_pixels_offset(design) + kept_pixels_bytes(design);
  if (design.groups == GroupSchedule::none) return phase_bytes(design);
  return kept_rows_offset(design) + (design.has_indices ? 2 * 4 * design.tile_m : 0);
}

}  // namespace gemmery::abi
