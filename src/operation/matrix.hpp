// SPDX-License-Identifier: Apache-2.0
// Facts of one operand's memory: its normalised strides, its alignment, what packed memory would
// have.
#pragma once

#include <gemmery/problem.hpp>
#include <gemmery/tensor.hpp>

#include <cstdint>

namespace gemmery::operation {

// How large a batch of matrices is.
struct MatrixExtents {
  std::int64_t batch = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// Sets the strides of extents 0 and 1 to 0: they are never used.
MatrixType normalize(MatrixType matrix, const MatrixExtents& extents) noexcept;

// Packed memory of a major, batches one after the other; aligned as memory whose first element is
// on 16 bytes.
MatrixType packed_matrix(DType dtype, Layout layout, const MatrixExtents& extents) noexcept;

// The alignment in bytes (1, 2, 4, 8 or 16) that every row or column start has: of the address, and
// of each stride but that of 1 along the contiguous direction.
std::uint8_t alignment_of(std::uintptr_t address, const MatrixType& matrix) noexcept;

// What a view of rank 3 (batch, rows, columns) is as an operand.
MatrixType matrix_type(const Tensor& view) noexcept;

// The same of what elements are reduced to, whose `own` extents are 1 where they fall together. Its
// strides tell which of out's extents it has, also where out has no elements: only those of extents
// of 1 are 0, and where it has no elements itself, they are as if it were packed.
MatrixType normalize_reduced(MatrixType matrix, const MatrixExtents& own) noexcept;
MatrixType reduced_matrix_type(const Tensor& view) noexcept;

}  // namespace gemmery::operation
