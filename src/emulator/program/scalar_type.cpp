// SPDX-License-Identifier: Apache-2.0
// The table of types: name, width, kind.
#include "emulator/program/scalar_type.hpp"

#include <array>
#include <cstddef>

namespace gemmery::emulator {
namespace {

enum class Nature : std::uint8_t { bits, is_unsigned, is_signed, floating };

struct TypeRow {
  std::string_view name;
  std::uint8_t bits;
  Nature nature;
};

// In the order of ScalarType.
constexpr std::array type_rows{
    TypeRow{"none", 0, Nature::bits},        TypeRow{"pred", 1, Nature::bits},
    TypeRow{"b8", 8, Nature::bits},          TypeRow{"b16", 16, Nature::bits},
    TypeRow{"b32", 32, Nature::bits},        TypeRow{"b64", 64, Nature::bits},
    TypeRow{"b128", 128, Nature::bits},      TypeRow{"u8", 8, Nature::is_unsigned},
    TypeRow{"u16", 16, Nature::is_unsigned}, TypeRow{"u32", 32, Nature::is_unsigned},
    TypeRow{"u64", 64, Nature::is_unsigned}, TypeRow{"s8", 8, Nature::is_signed},
    TypeRow{"s16", 16, Nature::is_signed},   TypeRow{"s32", 32, Nature::is_signed},
    TypeRow{"s64", 64, Nature::is_signed},   TypeRow{"u16x2", 32, Nature::is_unsigned},
    TypeRow{"s16x2", 32, Nature::is_signed}, TypeRow{"f16", 16, Nature::floating},
    TypeRow{"f16x2", 32, Nature::floating},  TypeRow{"bf16", 16, Nature::floating},
    TypeRow{"bf16x2", 32, Nature::floating}, TypeRow{"f32", 32, Nature::floating},
    TypeRow{"f32x2", 64, Nature::floating},  TypeRow{"f64", 64, Nature::floating},
    TypeRow{"tf32", 32, Nature::floating},   TypeRow{"e4m3", 8, Nature::floating},
    TypeRow{"e5m2", 8, Nature::floating},    TypeRow{"e4m3x2", 16, Nature::floating},
    TypeRow{"e5m2x2", 16, Nature::floating}, TypeRow{"s4", 4, Nature::is_signed},
    TypeRow{"u4", 4, Nature::is_unsigned},   TypeRow{"b1", 1, Nature::bits},
};
static_assert(type_rows.size() == static_cast<std::size_t>(ScalarType::b1) + 1);
static_assert(type_rows[static_cast<std::size_t>(ScalarType::f32)].name == "f32");

constexpr const TypeRow& row_of(ScalarType type) noexcept {
  return type_rows[static_cast<std::size_t>(type)];
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
  for (std::size_t at = 1; at < type_rows.size(); ++at)  // "none" is not a word of PTX
    if (type_rows[at].name == word) return static_cast<ScalarType>(at);
  return std::nullopt;
}

}  // namespace gemmery::emulator
