// SPDX-License-Identifier: Apache-2.0
// Operands of floating-point products in decomposed form: values as floats, and the exponents by
// which addends are compared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/arithmetic/tensor_core.hpp"

namespace gemmery::emulator::tensor_core {

inline constexpr std::uint32_t columns_at_once = 16;
inline constexpr std::uint32_t most_k = 64;

// The exponent of zeros: lower than that of any other addend.
inline constexpr std::int16_t no_exponent = -16384;

struct Range {                                 // the exponents of nonzero elements
  int low = -no_exponent, high = no_exponent;  // empty: all elements are zero
  bool has_special = false;  // has infinities or NaNs; `high` and the values are invalid then
};

// A row of A.
struct Row {
  std::array<float, most_k> value;
  std::array<std::int16_t, most_k> exponent;
  Range range;
};

void take_apart_row(const MatrixProduct& product, std::uint32_t row, Row& apart);

// One operand as values and exponents.
struct Factors {
  std::vector<float> value;
  std::vector<std::int16_t> exponent;
};

// B as rows of k, each with all n columns and padded with zeros to a multiple of columns_at_once.
struct Columns {
  MatrixElement element = MatrixElement::f16;
  bool is_negated = false;
  std::uint32_t n = 0, k = 0;
  std::vector<std::byte> bytes;  // the operand in memory: the key in the cache
  Factors factors;
  Range range;

  std::uint32_t stride() const noexcept {
    return (n + columns_at_once - 1) / columns_at_once * columns_at_once;
  }
};

// The columns of a product, valid until the next calls in this thread.
const Columns& columns_of(const MatrixProduct& product);

}  // namespace gemmery::emulator::tensor_core
