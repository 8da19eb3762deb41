// SPDX-License-Identifier: Apache-2.0
// A problem as cuBLASLt reads it. Its matrices are column major: a row-major out is computed as its
// transpose, out' = B' A'.
#pragma once

#include <gemmery/problem.hpp>
#include <gemmery/status.hpp>

#include <cstdint>

#include "providers/cublaslt/cublaslt_api.hpp"
#include "providers/cublaslt/epilogue_form.hpp"

namespace gemmery::cublaslt {

// Columns of `rows` elements, `leading` elements apart.
struct Matrix {
  DataType type = DataType::f32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading = 0;
  std::int64_t batch_stride = 0;
  std::uint32_t alignment = 1;  // bytes
  bool is_transposed = false;   // relative to the matrix that the product needs

  // Elements from the first to the last, of all batches.
  std::int64_t span(std::int64_t batches) const noexcept;
};

// A vector or matrix of the epilogue, whose address is a part of the descriptor.
struct Attachment {
  int operand = no_operand;  // of the program
  DataType type = DataType::f32;
  std::int64_t batch_stride = 0;
  std::uint32_t alignment = 1;
};

struct Product {
  ComputeType compute = ComputeType::f32;
  DataType scale = DataType::f32;  // of alpha and beta
  bool has_fast_accumulation = false;
  bool swaps = false;  // B is the first operand
  std::int64_t batches = 1;
  Matrix first, second, c, out;  // without a C, `c` is like out
  bool has_c = false;
  EpilogueForm epilogue;
  ScaleMode scale_mode = ScaleMode::tensor;
  Attachment first_scale, second_scale;  // of the two operands
  Attachment bias;

  std::int64_t largest_span() const noexcept;
};

// Success if cuBLASLt's tables of types, layouts and epilogues have the problem, else the first
// thing that they have not. Whether there is an algorithm is known to its heuristics alone.
Status describe(const GemmProblem& problem, Product& product);

// Alpha and beta of a run that this product can express exactly, else why not.
Status check_scalars(const Product& product, double alpha, double beta);

}  // namespace gemmery::cublaslt
