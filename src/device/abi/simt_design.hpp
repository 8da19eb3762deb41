// SPDX-License-Identifier: Apache-2.0
// The design of a simt kernel and the values that follow from it: threads, shared memory, grid, and
// which designs are legal.
#pragma once

#include <device/abi/companions.hpp>
#include <device/abi/conv_phases.hpp>
#include <device/abi/dtype.hpp>
#include <device/abi/group_schedule.hpp>
#include <device/abi/host_device.hpp>
#include <device/abi/power_of_two.hpp>
#include <device/abi/raster.hpp>
#include <device/abi/tile_order.hpp>
#include <device/abi/window_params.hpp>

namespace gemmery::abi {

/// The contiguous direction of a matrix, if it is known when the kernel is compiled.
enum class Contiguity : unsigned char { none, row_major, column_major };

/// `…_vector_bytes` is the widest access that base address and strides allow: one element, or 2, 4,
/// 8, 16 bytes along the contiguous index. The vectors of c and out, in elements, also divide the
/// extent of that index.
struct SimtDesign {
  DType a;
  DType b;
  DType c;
  DType out;
  DType accumulator;
  Contiguity a_contiguity;
  Contiguity b_contiguity;
  Contiguity c_contiguity;
  Contiguity out_contiguity;
  int a_vector_bytes;
  int b_vector_bytes;
  int c_vector_bytes;
  int out_vector_bytes;
  int tile_m;
  int tile_n;
  int tile_k;
  int thread_m;  // accumulators of one thread: thread_m x thread_n
  int thread_n;
  int k_slices;  // groups of threads that share a tile of out and split each k block
  int stages;    // k blocks in shared memory at once
  bool has_c;
  IndexedExtent indexed = IndexedExtent::none;
  ConvolutionKind convolution = ConvolutionKind::none;
  bool has_phases = false;           // a dgrad with a stride
  CompanionTypes a_companions = {};  // read in the mainloop
  CompanionTypes b_companions = {};

  bool operator==(const SimtDesign&) const = default;
};

/// Values of k in one staged word: four 8-bit integers feed one dp4a; any other element is a word
/// by itself.
GEMMERY_HOST_DEVICE
constexpr int k_per_word(const SimtDesign& design) {
  return design.accumulator == DType::int32 ? 4 : 1;
}

/// Bytes of an element in shared memory: of the accumulator's type, or four packed 8-bit integers.
GEMMERY_HOST_DEVICE
constexpr int word_bytes(const SimtDesign& design) {
  return design.accumulator == DType::float64 ? 8 : 4;
}

GEMMERY_HOST_DEVICE
constexpr int threads_per_slice(const SimtDesign& design) {
  return (design.tile_m / design.thread_m) * (design.tile_n / design.thread_n);
}

GEMMERY_HOST_DEVICE
constexpr int thread_count(const SimtDesign& design) {
  return threads_per_slice(design) * design.k_slices;
}

/// The least number of blocks per multiprocessor, which limits registers. Two blocks of 256 threads
/// with 8x8 accumulators each fit in 128 registers without spills if little is decoded, and hide
/// each other's latency: 43.0 TF against 41.6 for f32, 41 against 35.5 for bf16 (4096^3, H200).
/// With a C some designs spilled 4 to 24 bytes (ptxas 13.0): 16-bit operands on sm_80; float32 on
/// sm_80 to sm_121, except if all four matrices are accessed by 16 bytes, out along rows.
GEMMERY_HOST_DEVICE
constexpr int least_blocks_per_multiprocessor(const SimtDesign& design) {
  const bool is_copied = design.a == DType::float32 && design.b == DType::float32;
  const bool is_wide = design.a_vector_bytes == 16 && design.b_vector_bytes == 16;
  const bool has_wide_halves = is_wide && bits_of(design.a) >= 16 && bits_of(design.b) >= 16;
  const bool has_wide_rows = design.out_vector_bytes == 16 && design.c_vector_bytes == 16 &&
                             design.out_contiguity == Contiguity::row_major &&
                             design.c_contiguity == Contiguity::row_major;
  const bool is_light =
      design.has_c ? is_copied && is_wide && has_wide_rows : is_copied || has_wide_halves;
  if (design.a_companions.are_used() || design.b_companions.are_used()) return 1;
  const bool is_small =
      design.thread_m * design.thread_n * word_bytes(design) <= 256 && thread_count(design) <= 256;
  return is_small && is_light && word_bytes(design) == 4 ? 2 : 1;
}

/// Words between two k of a staged tile. The 16 bytes of padding put neighbouring k into different
/// banks when a k-contiguous operand is transposed.
GEMMERY_HOST_DEVICE
constexpr int staged_pitch(const SimtDesign& design, int extent) {
  return extent + 16 / word_bytes(design);
}

GEMMERY_HOST_DEVICE
constexpr int stage_bytes(const SimtDesign& design) {
  return (staged_pitch(design, design.tile_m) + staged_pitch(design, design.tile_n)) *
         (design.tile_k / k_per_word(design)) * word_bytes(design);
}

/// Bytes for the reduction of accumulators over k slices; they reuse the memory of the stages.
GEMMERY_HOST_DEVICE
constexpr int reduction_bytes(const SimtDesign& design) {
  return design.k_slices > 1 ? design.tile_m * design.tile_n * word_bytes(design) : 0;
}

GEMMERY_HOST_DEVICE
constexpr int phase_offset(const SimtDesign& design) {
  const int staged = stage_bytes(design) * design.stages;
  return ((staged > reduction_bytes(design) ? staged : reduction_bytes(design)) + 15) / 16 * 16;
}

/// With phases: the tile's phase and the row of out for each row of the tile follow.
GEMMERY_HOST_DEVICE
constexpr int shared_bytes(const SimtDesign& design) {
  if (design.has_phases) return phase_offset(design) + kept_phase_bytes + 4 * design.tile_m;
  const int staged = stage_bytes(design) * design.stages;
  return staged > reduction_bytes(design) ? staged : reduction_bytes(design);
}

/// The order of tiles for all designs. Bands of 4, 8 and 16 are within 0.5 % of each other (f32
/// 4096^3 on CUDA cores, H200).
[[maybe_unused]] constexpr Raster simt_raster = {.along = Along::m, .band = 8};

/// Tiles of one matrix are counted in 32 bits, with room for a stride.
GEMMERY_HOST_DEVICE
constexpr bool fits_grid(unsigned tile_rows, unsigned tile_columns) {
  return static_cast<UInt64>(tile_rows) * tile_columns <= 0x7fffffffU;
}

/// Blocks of a launch along x (tiles of a matrix) and y (matrices of the batch).
struct SimtGrid {
  unsigned x;
  unsigned y;
};

/// One block per tile up to the limits of a grid, at most `block_limit` in all; blocks stride over
/// further tiles. Neither count may be 0.
GEMMERY_HOST_DEVICE
constexpr SimtGrid simt_grid(unsigned tiles, unsigned batches, unsigned block_limit = 0x7fffffffU) {
  const unsigned x = tiles < block_limit ? tiles : block_limit;
  const unsigned left = block_limit / x < 0xffffU ? block_limit / x : 0xffffU;
  return {.x = x, .y = batches < left ? batches : left};
}

enum class SimtFault : unsigned char {
  none,
  operand_types,
  accumulator,
  c_type,
  out_type,
  a_vector_bytes,
  b_vector_bytes,
  c_vector_bytes,
  out_vector_bytes,
  tile_m,
  tile_n,
  tile_k,
  thread_m,
  thread_n,
  k_slices,
  stages,
  thread_count,
  shared_bytes,
  indexed_layout,
  window_layout
};

namespace detail {

GEMMERY_HOST_DEVICE
constexpr bool is_simt_float(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16 ||
         dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2;
}

GEMMERY_HOST_DEVICE
constexpr bool is_byte_integer(DType dtype) {
  return dtype == DType::int8 || dtype == DType::uint8;
}

GEMMERY_HOST_DEVICE
constexpr DType accumulator_of(DType operand) {
  if (operand == DType::float64) return DType::float64;
  return is_byte_integer(operand) ? DType::int32 : DType::float32;
}

GEMMERY_HOST_DEVICE
constexpr bool accepts_operand(DType accumulator, DType operand) {
  const bool is_known =
      operand == DType::float64 || is_byte_integer(operand) || is_simt_float(operand);
  // float32 accumulators take integers that scales turn into floats, or that multiply floats.
  const bool is_decoded = accumulator == DType::float32 && is_byte_integer(operand);
  return is_known && (is_decoded || accumulator_of(operand) == accumulator);
}

/// The same, or codes of 4 and 6 bits, which other families that compute like simt do not take.
GEMMERY_HOST_DEVICE
constexpr bool accepts_operand_or_codes(DType accumulator, DType operand) {
  if (bits_of(operand) < 8) return accumulator == DType::float32;
  return accepts_operand(accumulator, operand);
}

GEMMERY_HOST_DEVICE
constexpr bool accepts_output(DType accumulator, DType output) {
  if (output == DType::float32) return true;
  if (accumulator == DType::float64) return output == DType::float64;
  if (accumulator == DType::float32) return output == DType::float16 || output == DType::bfloat16;
  return output == DType::int32 || is_byte_integer(output);
}

GEMMERY_HOST_DEVICE
constexpr bool accepts_vector(DType dtype, Contiguity contiguity, int bytes) {
  if (bits_of(dtype) < 8) return contiguity == Contiguity::none && bytes == 1;
  if (contiguity == Contiguity::none) return bytes == bytes_of(dtype);
  return is_power_of_two(bytes) && bytes >= bytes_of(dtype) && bytes <= 16;
}

GEMMERY_HOST_DEVICE
constexpr bool accepts_tile(int tile, int thread) {
  return is_power_of_two(tile) && tile >= 8 && tile <= 256 && tile % thread == 0;
}

}  // namespace detail

namespace detail {

/// Pixels and taps are not adjacent along the extents of a tile. Along k only channels are.
GEMMERY_HOST_DEVICE
constexpr bool accepts_windows(const SimtDesign& design) {
  const bool finds_a =
      design.convolution == ConvolutionKind::fprop || design.convolution == ConvolutionKind::dgrad;
  const bool finds_b =
      design.convolution == ConvolutionKind::dgrad || design.convolution == ConvolutionKind::wgrad;
  return (!finds_a || design.a_contiguity == Contiguity::row_major) &&
         (!finds_b || design.b_contiguity == Contiguity::none);
}

/// Elements that are found by indices are not adjacent.
GEMMERY_HOST_DEVICE
constexpr bool accepts_indices(const SimtDesign& design) {
  if (design.indexed == IndexedExtent::none) return true;
  const bool is_rows = design.indexed == IndexedExtent::rows;
  const Contiguity along = is_rows ? Contiguity::column_major : Contiguity::row_major;
  return (is_rows ? design.a_contiguity : design.b_contiguity) != along &&
         design.out_contiguity != along && (!design.has_c || design.c_contiguity != along);
}

}  // namespace detail

/// The first field that makes a design illegal, or none.
GEMMERY_HOST_DEVICE
constexpr SimtFault find_fault(const SimtDesign& design) {
  using namespace detail;
  constexpr int thread_limit = 1024;
  constexpr int shared_limit =
      99 * 1024;  // available to a block on every target from sm_80 to sm_120
  if (!accepts_operand_or_codes(design.accumulator, design.a) ||
      !accepts_operand_or_codes(design.accumulator, design.b))
    return SimtFault::operand_types;
  if (design.has_c && !accepts_output(design.accumulator, design.c)) return SimtFault::c_type;
  if (!accepts_output(design.accumulator, design.out)) return SimtFault::out_type;
  if (!accepts_vector(design.a, design.a_contiguity, design.a_vector_bytes))
    return SimtFault::a_vector_bytes;
  if (!accepts_vector(design.b, design.b_contiguity, design.b_vector_bytes))
    return SimtFault::b_vector_bytes;
  if (design.has_c && !accepts_vector(design.c, design.c_contiguity, design.c_vector_bytes))
    return SimtFault::c_vector_bytes;
  if (!accepts_vector(design.out, design.out_contiguity, design.out_vector_bytes))
    return SimtFault::out_vector_bytes;
  if (!is_power_of_two(design.thread_m) || design.thread_m > 16) return SimtFault::thread_m;
  if (!is_power_of_two(design.thread_n) || design.thread_n > 16) return SimtFault::thread_n;
  if (!accepts_tile(design.tile_m, design.thread_m)) return SimtFault::tile_m;
  if (!accepts_tile(design.tile_n, design.thread_n)) return SimtFault::tile_n;
  if (!is_power_of_two(design.k_slices)) return SimtFault::k_slices;
  if (!is_power_of_two(design.tile_k) ||
      design.tile_k < 16 * design.k_slices / word_bytes(design) * k_per_word(design) ||
      design.tile_k < 8 * k_per_word(design) || design.tile_k > 128) {
    return SimtFault::tile_k;
  }
  const bool has_codes = bits_of(design.a) < 8 || bits_of(design.b) < 8;
  if (has_codes &&
      (design.indexed != IndexedExtent::none || design.convolution != ConvolutionKind::none))
    return SimtFault::operand_types;
  if (!accepts_indices(design)) return SimtFault::indexed_layout;
  if (!accepts_windows(design)) return SimtFault::window_layout;
  if (design.stages < 2 || design.stages > 12) return SimtFault::stages;
  if (threads_per_slice(design) < 1 || thread_count(design) % 32 != 0 ||
      thread_count(design) > thread_limit)
    return SimtFault::thread_count;
  return shared_bytes(design) > shared_limit ? SimtFault::shared_bytes : SimtFault::none;
}

GEMMERY_HOST_DEVICE
constexpr bool is_legal(const SimtDesign& design) { return find_fault(design) == SimtFault::none; }

}  // namespace gemmery::abi
