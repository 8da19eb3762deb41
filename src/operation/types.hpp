// SPDX-License-Identifier: Apache-2.0
// Which element types go together in a GEMM: one answer for operands in memory and for problems
// that are spelled.
#pragma once

#include <gemmery/dtype.hpp>
#include <gemmery/problem.hpp>

#include <string_view>

namespace gemmery::operation {

// Throws Error (unsupported) for element types that mean nothing without scales or unpacking.
void check_operand_type(std::string_view operand, DType dtype);

// Whether each product of float32 is formed by three of narrower types.
bool has_three_products(Math math) noexcept;

// How products are formed and added up.
struct ProductTypes {
  DType a, b;
  DType accumulator;
  Math math;
};

// Throws Error (invalid_argument, or unsupported where another operation would serve) naming what
// does not go together.
void check_products(const ProductTypes& types);

}  // namespace gemmery::operation
