// SPDX-License-Identifier: Apache-2.0
// The types of PTX instructions and registers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gemmery::emulator {

enum class ScalarType : std::uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  u16x2,
  s16x2,
  f16,
  f16x2,
  bf16,
  bf16x2,
  f32,
  f32x2,
  f64,
  tf32,
  e4m3,
  e5m2,
  e4m3x2,
  e5m2x2,
  s4,
  u4,
  b1,
};

// Bits in memory and in a register (both halves of a packed pair); 0 for none, 1 for pred.
int bits_of(ScalarType type) noexcept;
// Bytes in a register or in memory, at least 1.
inline int bytes_of(ScalarType type) noexcept { return (bits_of(type) + 7) / 8; }
bool is_signed_integer(ScalarType type) noexcept;
bool is_unsigned_integer(ScalarType type) noexcept;
bool is_float(ScalarType type) noexcept;  // true for packed floating-point types, too
// "f32" without the dot.
std::string_view name(ScalarType type) noexcept;
std::optional<ScalarType> find_scalar_type(std::string_view word) noexcept;

}  // namespace gemmery::emulator
