// SPDX-License-Identifier: Apache-2.0
// The memory layout of one operand: its normalised strides, its alignment, and the packed layout.
#pragma once

#include <gemmery/problem.hpp>
#include <gemmery/tensor.hpp>

#include <array>
#include <cstdint>

namespace gemmery::operation {

// The extents of a batch of matrices.
struct MatrixExtents {
  std::int64_t batch = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// Sets the strides of extents 0 and 1 to 0: they are never used.
MatrixType normalize(MatrixType matrix, const MatrixExtents& extents) noexcept;

// Packed memory in a layout, batches one after the other; aligned as if its first element were
// aligned to 16 bytes.
MatrixType packed_matrix(DType dtype, Layout layout, const MatrixExtents& extents) noexcept;

// The alignment in bytes (1, 2, 4, 8 or 16) of all starts of rows or columns: of the address and of
// each stride except the contiguous one.
std::uint8_t alignment_of(std::uintptr_t address, const MatrixType& matrix) noexcept;

// False if elements of a packed type begin within a byte in more directions than one, in which they
// are adjacent: no tensor has such strides.
bool has_whole_bytes(const MatrixType& matrix) noexcept;

// A view of a matrix at `data`, which is an array of pointers if the matrix has pointers.
Tensor make_view(const void* data, const MatrixType& matrix, const MatrixExtents& extents,
                 Device device);

// The same memory as a view of rank 3. For a batch by pointers strides[0] is ignored.
Tensor with_strides(const Tensor& tensor, const std::array<std::int64_t, 3>& shape,
                    const std::array<std::int64_t, 3>& strides);

// The matrix of a view of rank 3 (batch, rows, columns).
MatrixType matrix_type(const Tensor& view) noexcept;
// The same of scales, whose strides in no matrices are those in one, as lines spell them.
MatrixType spelled_matrix_type(const Tensor& view) noexcept;

// The same for a reduction's result, whose `own` extents are 1 along reduced directions. Its
// strides show which of out's extents it has, even if out has no elements: only strides of extents
// of 1 are 0, and if it has no elements itself, its strides are those of packed memory.
MatrixType normalize_reduced(MatrixType matrix, const MatrixExtents& own) noexcept;
MatrixType reduced_matrix_type(const Tensor& view) noexcept;

}  // namespace gemmery::operation
