// SPDX-License-Identifier: Apache-2.0
// Tensor maps of the emulated device: the 128 bytes that cuTensorMapEncode… writes, and the walk of
// a box through global memory into (swizzled) shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "emulator/check/fault.hpp"

namespace gemmery::emulator {

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
  std::array<std::int32_t, 3>
      lower_corner{};  // im2col: pixel box corners of the spatial dimensions
  std::array<std::int32_t, 3> upper_corner{};
  std::uint32_t channels_per_pixel = 0;  // im2col
  std::uint32_t pixels_per_column = 0;   // im2col

  friend bool operator==(const TensorMapFields&, const TensorMapFields&) = default;
};

// The manual's rules; an empty string, or the field that breaks one and how. (The host's
// cuTensorMapEncode… answers invalid_value then.)
std::string find_broken_rule(const TensorMapFields& fields);

using TensorMapBytes = std::array<std::uint64_t, 16>;
// A form of our own with a mark and a checksum; hardware's is not documented.
TensorMapBytes encode(const TensorMapFields& fields);
// Throws Fault (tensor_map) for bytes that no encode wrote (a copy that is not aligned to 64 bytes,
// a struct passed by pointer instead of as __grid_constant__, garbage).
TensorMapFields decode(const TensorMapBytes& bytes);

// Bytes of one box in shared memory: what complete_tx counts, whole box even where it is clipped.
std::uint32_t box_bytes(const TensorMapFields& fields);

// One piece of a box: `bytes` bytes at shared offset `shared_offset` (from the box's start, swizzle
// applied by the address bits of `shared_base`) are the bytes at `address`, or fill where
// `is_inside` is false. Pieces never cross a 16-byte chunk of shared memory.
struct BoxPiece {
  std::uint32_t shared_offset = 0;
  std::uint32_t bytes = 0;
  std::uint64_t address = 0;
  bool is_inside = false;
};
// Calls `visit(const BoxPiece&)` for a whole tile box at `coordinates` (rank of them, signed).
// im2col: `coordinates` and `offsets` as in the manual (PTX ISA, tensor im2col mode).
void for_each_piece(const TensorMapFields& fields, std::uint32_t shared_base,
                    std::span<const std::int32_t> coordinates,
                    std::span<const std::uint16_t> im2col_offsets,
                    const std::function<void(const BoxPiece&)>& visit);

}  // namespace gemmery::emulator
