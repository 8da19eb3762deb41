// SPDX-License-Identifier: Apache-2.0
// Operands as oneDNN reads them: in place, or as packed copies of a type that it multiplies.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <gemmery/arguments.hpp>
#include <gemmery/dtype.hpp>

#include "providers/host/onednn.hpp"
#include "providers/host/scratch.hpp"

namespace gemmery::host {

using onednn::DataType;
using onednn::OperandShape;

// The types in which oneDNN multiplies and accumulates.
struct ComputeTypes {
  DataType a, b, sum;
};
ComputeTypes compute_types(DType a, DType b);

// The same, but float32 instead of bfloat16 if an operand has subnormal numbers (views of rank 3).
// Instructions on bfloat16 read subnormal numbers as 0, whatever the processor's mode; multiplied
// by 1e30 that is a large error. Such operands are rare.
ComputeTypes compute_types_of(const Tensor& a, const Tensor& b);

// undefined: oneDNN does not read it.
DataType storage_type(DType dtype);

struct Extents {
  std::int64_t batches, rows, columns;
};

// A batch of matrices in place, in oneDNN's terms; nothing if its strides are not those of packed
// or padded matrices.
std::optional<OperandShape> in_place_shape(const MatrixType& matrix, const Extents& extents);
OperandShape packed_shape(DataType type, const Extents& extents);

bool is_converted(const MatrixType& matrix, DataType compute);
// True if an operand can be presented; converted ones are packed anew, whatever their strides.
bool fits(const MatrixType& matrix, const Extents& extents, DataType compute);

// One operand as oneDNN reads it.
struct Presented {
  OperandShape shape;
  const void* data;
};

// Zero rows and columns added to a copy.
struct Padding {
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  bool is_none() const { return rows == 0 && columns == 0; }
};

// The memory of a copy, and the operand that it is for.
struct CopyPlace {
  Scratch& scratch;
  std::string_view operand;
};

// Packed, row by row, of the compute type.
Presented present_copy(const Tensor& view, DataType compute, const Padding& padding,
                       const CopyPlace& place);
// In place if that is possible without padding.
Presented present(const Tensor& view, const MatrixType& matrix, DataType compute,
                  const Padding& padding, const CopyPlace& place);

}  // namespace gemmery::host
