// SPDX-License-Identifier: Apache-2.0
// Operands as tensors: packed memory of one product, or of several products one after the other.
#pragma once

#include <gemmery/describe.hpp>
#include <gemmery/tensor.hpp>

#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace gemmery::describe {

// Elements that lie together in an interleaved layout.
inline constexpr std::int64_t interleave = 32;

// Rows x columns of one product.
struct MatrixShape {
  std::int64_t rows;
  std::int64_t columns;
};

// Bytes of packed memory. Throws Error (out_of_memory), naming the operand, if the number
// overflows.
std::size_t packed_bytes(std::string_view operand, std::initializer_list<std::int64_t> extents,
                         DType dtype);

// A view of rank 3, (batch, rows, columns), of RowMajor or ColumnMajor memory.
Tensor packed_view(const void* data, DType dtype, Layout layout, const MatrixShape& shape,
                   std::int64_t batch, Device device);

// A view of one row per product, broadcast along the rows.
Tensor bias_view(const void* data, DType dtype, const MatrixShape& shape, std::int64_t batch,
                 Device device);

// A view of rank 3, (blocks of 32, lines, 32), of interleaved memory; and the same view of plain
// memory, in which the blocks of 32 are contiguous in a line of `length`. The lines of A and C are
// rows, those of B columns.
Tensor interleaved_view(const void* data, DType dtype, std::int64_t lines, std::int64_t length,
                        Device device);
Tensor line_view(const void* data, DType dtype, std::int64_t lines, std::int64_t length,
                 Device device);

}  // namespace gemmery::describe
