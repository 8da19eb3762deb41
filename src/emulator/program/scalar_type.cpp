// SPDX-License-Identifier: Apache-2.0
// The table of types: name, width, kind.
#include "emulator/program/scalar_type.hpp"

#include <array>
#include <cstddef>

namespace gemmery::emulator {
namespace {

enum class Nature : std::uint8_t { bits, is_unsigned, is_signed, floating };

struct Row {
  std::string_view name;
  std::uint8_t bits;
  Nature nature;
};

// In the order of ScalarType.
constexpr std::array rows{
    Row{"none", 0, Nature::bits},        Row{"pred", 1, Nature::bits},
    Row{"b8", 8, Nature::bits},          Row{"b16", 16, Nature::bits},
    Row{"b32", 32, Nature::bits},        Row{"b64", 64, Nature::bits},
    Row{"b128", 128, Nature::bits},      Row{"u8", 8, Nature::is_unsigned},
    Row{"u16", 16, Nature::is_unsigned}, Row{"u32", 32, Nature::is_unsigned},
    Row{"u64", 64, Nature::is_unsigned}, Row{"s8", 8, Nature::is_signed},
    Row{"s16", 16, Nature::is_signed},   Row{"s32", 32, Nature::is_signed},
    Row{"s64", 64, Nature::is_signed},   Row{"u16x2", 32, Nature::is_unsigned},
    Row{"s16x2", 32, Nature::is_signed}, Row{"f16", 16, Nature::floating},
    Row{"f16x2", 32, Nature::floating},  Row{"bf16", 16, Nature::floating},
    Row{"bf16x2", 32, Nature::floating}, Row{"f32", 32, Nature::floating},
    Row{"f32x2", 64, Nature::floating},  Row{"f64", 64, Nature::floating},
    Row{"tf32", 32, Nature::floating},   Row{"e4m3", 8, Nature::floating},
    Row{"e5m2", 8, Nature::floating},    Row{"e4m3x2", 16, Nature::floating},
    Row{"e5m2x2", 16, Nature::floating}, Row{"s4", 4, Nature::is_signed},
    Row{"u4", 4, Nature::is_unsigned},   Row{"b1", 1, Nature::bits},
};
static_assert(rows.size() == static_cast<std::size_t>(ScalarType::b1) + 1);
static_assert(rows[static_cast<std::size_t>(ScalarType::f32)].name == "f32");

constexpr const Row& row_of(ScalarType type) noexcept {
  return rows[static_cast<std::size_t>(type)];
}

}  // namespace

int bits_of(ScalarType type) noexcept { return row_of(type).bits; }

bool is_signed_integer(ScalarType type) noexcept {
  return row_of(type).nature == Nature::is_signed;
}

bool is_unsigned_integer(ScalarType type) noexcept {
  return row_of(type).nature == Nature::is_unsigned;
}

bool is_float(ScalarType type) noexcept { return row_of(type).nature == Nature::floating; }

std::string_view name(ScalarType type) noexcept { return row_of(type).name; }

std::optional<ScalarType> find_scalar_type(std::string_view word) noexcept {
  for (std::size_t at = 1; at < rows.size(); ++at)  // "none" is not a word of PTX
    if (rows[at].name == word) return static_cast<ScalarType>(at);
  return std::nullopt;
}

}  // namespace gemmery::emulator
