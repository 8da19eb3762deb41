// SPDX-License-Identifier: Apache-2.0
// Element types: the enumeration, its names and its facts, all expanded from dtype.def.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <gemmery/export.hpp>

namespace gemmery {

enum class DType : std::uint8_t {
#define GEMMERY_DTYPE(name, ...) name,
#include <gemmery/dtype.def>
};

enum class DTypeKind : std::uint8_t { floating, signed_integer, unsigned_integer };

// The facts of an element type. `exponent_bits` and `mantissa_bits` are those of the encoding
// (explicit bits), 0 for integers.
struct DTypeFacts {
  DType dtype;
  std::string_view name;   // canonical, torch's spelling: "bfloat16"
  std::string_view alias;  // short: "bf16"
  int bits;
  DTypeKind kind;
  int exponent_bits;
  int mantissa_bits;
  int dlpack_code;  // DLDataTypeCode of DLPack 1.1
};

inline constexpr std::array dtype_table{
#define GEMMERY_DTYPE(name, alias, bits, kind, exponent_bits, mantissa_bits, dlpack_code, cuda) \
  DTypeFacts{DType::name,     #name,         #alias,        bits,                               \
             DTypeKind::kind, exponent_bits, mantissa_bits, dlpack_code},
#include <gemmery/dtype.def>
};

constexpr const DTypeFacts& facts(DType dtype) noexcept {
  return dtype_table[static_cast<std::size_t>(dtype)];
}
constexpr std::string_view name(DType dtype) noexcept { return facts(dtype).name; }
constexpr std::string_view alias(DType dtype) noexcept { return facts(dtype).alias; }
constexpr int bit_width(DType dtype) noexcept { return facts(dtype).bits; }
constexpr bool is_floating(DType dtype) noexcept {
  return facts(dtype).kind == DTypeKind::floating;
}
constexpr bool is_integer(DType dtype) noexcept { return !is_floating(dtype); }

// True for elements of fewer than 8 bits, which share bytes (dtype.def has their order).
constexpr bool is_packed(DType dtype) noexcept { return bit_width(dtype) < 8; }

// The smallest number of elements that are whole bytes: 2 of 4 bits, 4 of 6 bits, 1 of other types.
constexpr std::int64_t whole_elements(DType dtype) noexcept {
  return !is_packed(dtype) ? 1 : bit_width(dtype) == 6 ? 4 : 2;
}

// Bytes of one element, and the least alignment of its address; 1 for packed types.
constexpr std::size_t byte_width(DType dtype) noexcept {
  return is_packed(dtype) ? 1 : static_cast<std::size_t>(bit_width(dtype)) / 8;
}

// The bytes of a run of `elements`, a last part of a byte included: the distance in bytes of
// elements that are so many apart, if both are at the beginning of a byte. Negative distances too.
constexpr std::int64_t storage_bytes(DType dtype, std::int64_t elements) noexcept {
  if (!is_packed(dtype)) return elements * static_cast<std::int64_t>(byte_width(dtype));
  return (elements * bit_width(dtype) + 7) >> 3;
}

// Parses canonical names, short forms, NumPy's and CUDA's spellings ("<f4", "CUDA_R_16BF", "half");
// nullopt for other words. Case matters.
GEMMERY_API std::optional<DType> parse_dtype(std::string_view word) noexcept;

// The element type of a C++ type, if there is exactly one.
template <class T>
struct dtype_of;
template <>
struct dtype_of<double> {
  static constexpr DType value = DType::float64;
};
template <>
struct dtype_of<float> {
  static constexpr DType value = DType::float32;
};
template <>
struct dtype_of<std::int8_t> {
  static constexpr DType value = DType::int8;
};
template <>
struct dtype_of<std::uint8_t> {
  static constexpr DType value = DType::uint8;
};
template <>
struct dtype_of<std::int32_t> {
  static constexpr DType value = DType::int32;
};
template <>
struct dtype_of<std::uint32_t> {
  static constexpr DType value = DType::uint32;
};

}  // namespace gemmery
