// SPDX-License-Identifier: Apache-2.0
// The valid combinations of element types in a GEMM: the same for operands in memory and for
// problems in text.
#pragma once

#include <gemmery/dtype.hpp>
#include <gemmery/problem.hpp>

#include <string_view>

namespace gemmery::operation {

// Throws Error (unsupported) for element types that need scales or unpacking.
void check_operand_type(std::string_view operand, DType dtype);

// Throws Error for operands of packed types (is_packed) in a convolution, and for groups of them
// that may begin within a byte.
void check_packed_operands(const GemmProblem& problem);

// The number of products of narrower types that form one float32 product: 3, 6 or 9; otherwise 1.
int product_count(Math math) noexcept;

// The types and math of products and accumulators.
struct ProductTypes {
  DType a, b;
  DType accumulator;
  Math math;
  bool are_decoded = false;  // integers enter products as floating-point numbers
};

// Throws Error for a combination that is not valid, which it names: invalid_argument, or
// unsupported if another operation would serve.
void check_products(const ProductTypes& types);

}  // namespace gemmery::operation
