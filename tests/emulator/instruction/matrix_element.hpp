// SPDX-License-Identifier: Apache-2.0
// Types of the elements of matrix instructions, and numbers whose products and sums are exact.
#pragma once

#include <gemmery/dtype.hpp>

#include <cstdint>
#include <optional>

// A namespace of its own, beside the emulator's ScalarType, whose enumerators have these names.
namespace gemmery::emulator::matrix_elements {

struct Element {
  const char* name;  // in PTX
  std::uint32_t bits;
  std::optional<DType> dtype;  // of floats
  int least, most;             // range of values
};

inline constexpr Element f16{"f16", 16, DType::float16, -4, 4};
inline constexpr Element bf16{"bf16", 16, DType::bfloat16, -4, 4};
inline constexpr Element tf32{"tf32", 32, DType::float32, -4, 4};
inline constexpr Element f32{"f32", 32, DType::float32, -9, 9};
inline constexpr Element f64{"f64", 64, DType::float64, -9, 9};
inline constexpr Element e4m3{"e4m3", 8, DType::float8_e4m3fn, -4, 4};
inline constexpr Element e5m2{"e5m2", 8, DType::float8_e5m2, -4, 4};
inline constexpr Element s8{"s8", 8, {}, -128, 127};
inline constexpr Element u8{"u8", 8, {}, 0, 255};
inline constexpr Element s4{"s4", 4, {}, -8, 7};
inline constexpr Element u4{"u4", 4, {}, 0, 15};
inline constexpr Element b1{"b1", 1, {}, 0, 1};
inline constexpr Element s32{"s32", 32, {}, -99, 99};

}  // namespace gemmery::emulator::matrix_elements
