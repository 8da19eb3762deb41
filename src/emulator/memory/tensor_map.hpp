// SPDX-License-Identifier: Apache-2.0
// Tensor maps of the emulated device: the 128 bytes that cuTensorMapEncode… writes, and the rows of
// a box in global memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emulator/check/fault.hpp"

namespace gemmery::emulator {

// In the order of CUtensorMapDataType.
enum class MapElement : std::uint8_t {
  u8,
  u16,
  u32,
  s32,
  u64,
  s64,
  f16,
  f32,
  f64,
  bf16,
  f32_flush,
  tf32,
  tf32_flush,
};
std::uint32_t bytes_of(MapElement element) noexcept;
bool is_float(MapElement element) noexcept;

inline constexpr std::uint32_t max_map_rank = 5;

struct TensorMapFields {
  std::uint64_t address = 0;
  MapElement element = MapElement::u8;
  std::uint32_t rank = 1;
  std::array<std::uint64_t, 5> extents{};
  std::array<std::uint64_t, 4> byte_strides{};
  std::array<std::uint32_t, 5> box{};
  std::array<std::uint32_t, 5> element_strides{};
  std::uint8_t interleave = 0;  // 0 none, 1 16 bytes, 2 32 bytes
  std::uint8_t swizzle = 0;     // 0 none, 1 32, 2 64, 3 128 bytes
  bool fills_nan = false;       // out of bounds: NaN instead of zero
  bool is_im2col = false;
  // im2col: pixel box corners of the spatial dimensions, W first.
  std::array<std::int32_t, 3> lower_corner{};
  std::array<std::int32_t, 3> upper_corner{};
  std::uint32_t channels_per_pixel = 0;  // im2col
  std::uint32_t pixels_per_column = 0;   // im2col

  friend bool operator==(const TensorMapFields&, const TensorMapFields&) = default;
};

// The rules of cuTensorMapEncodeTiled and …Im2col in the driver API's manual; an empty string, or
// the field that breaks one and how. (The host's cuTensorMapEncode… returns invalid_value then.)
// Array entries beyond the rank are ignored.
std::string find_broken_rule(const TensorMapFields& fields);

using TensorMapBytes = std::array<std::uint64_t, 16>;
// The encoding has a mark and a checksum. It differs from the hardware's, which is not documented.
TensorMapBytes encode(const TensorMapFields& fields);
// Throws Fault (tensor_map) for bytes that no encode wrote (a copy that is not aligned to 64 bytes,
// a struct passed by pointer instead of as __grid_constant__, garbage). The rules are not checked:
// tensormap.replace may break them for a while.
TensorMapFields decode(const TensorMapBytes& bytes);

// The reason why a valid map is not supported: the hardware's behaviour is not known. Empty if it
// is supported.
std::string find_unknown_layout(const TensorMapFields& fields);

// Bytes of one box in shared memory, which complete_tx counts; a clipped box counts in full.
std::uint32_t box_bytes(const TensorMapFields& fields) noexcept;
// Bytes of one row of a box: the elements along dimension 0.
std::uint32_t row_bytes(const TensorMapFields& fields) noexcept;

// One row of a box: `row_bytes` bytes from `shared_offset` on (relative to the box, before
// swizzling). The bytes [inside_from, inside_from + inside_bytes) are inside the tensor, contiguous
// from `address` on; the others are filled.
struct BoxRow {
  std::uint32_t shared_offset = 0;
  std::uint32_t inside_from = 0;
  std::uint32_t inside_bytes = 0;
  std::uint64_t address = 0;
};
// The rows of a box at `coordinates` (rank of them, signed), in the order of shared memory.
// im2col: `offsets` has rank - 2 of them, W first; the coordinates are those of the first pixel,
// inside the pixel box lower_corner … extent - 1 + upper_corner (PTX ISA, im2col mode). Pixels
// follow along W in steps of the element stride, then H, D and N.
std::vector<BoxRow> rows_of_box(const TensorMapFields& fields,
                                std::span<const std::int32_t> coordinates,
                                std::span<const std::uint16_t> offsets);

// The swizzled address of a byte of the box: bits 4… of the address are XORed with bits 7… (one,
// two or three of them).
constexpr std::uint32_t swizzled(std::uint8_t swizzle, std::uint32_t shared_address) noexcept {
  const std::uint32_t chunk_bits = (1u << swizzle) - 1;
  return shared_address ^ ((shared_address >> 7 & chunk_bits) << 4);
}

// Fills elements out of bounds: with zeros, or with 16-bit words of 0x7ff7, a NaN in every
// floating-point type of 16 bits and more (recorded: tests/data/emulator/README.md).
void fill_out_of_bounds(const TensorMapFields& fields, std::byte* to, std::uint32_t bytes);
// Converts elements as a load does: both types of tf32 round to 10 fraction bits, to nearest even.
// No load flushes subnormals, whatever the type's name says (recorded).
void convert_elements(const TensorMapFields& fields, std::byte* elements, std::uint32_t bytes);

}  // namespace gemmery::emulator
