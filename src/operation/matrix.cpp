// SPDX-License-Identifier: Apache-2.0
// Strides, alignments and layouts of operands.
#include "operation/matrix.hpp"

#include <algorithm>
#include <array>

#include "core/arithmetic.hpp"

namespace gemmery::operation {
namespace {

constexpr std::uint64_t largest_alignment = 16;

std::uint64_t lowest_set_bit(std::uint64_t value) { return value & (~value + 1); }

MatrixExtents extents_of(const Tensor& view) noexcept {
  return {view.extent(0), view.extent(1), view.extent(2)};
}

MatrixType strides_of(const Tensor& view) noexcept {
  return {.dtype = view.dtype(),
          .batch_stride = view.stride(0),
          .row_stride = view.stride(1),
          .column_stride = view.stride(2)};
}

// An address with the alignment that matrices are known to have.
std::uintptr_t address_of(const Tensor& view) noexcept {
  if (view.element_count() == 0) return 0;
  if (view.has_pointers()) return static_cast<std::uintptr_t>(view.pointer_alignment());
  return reinterpret_cast<std::uintptr_t>(view.data());
}

MatrixType aligned_as(const Tensor& view, MatrixType matrix) noexcept {
  matrix.alignment = alignment_of(address_of(view), matrix);
  return matrix;
}

}  // namespace

MatrixType normalize(MatrixType matrix, const MatrixExtents& extents) noexcept {
  const bool is_empty = extents.batch == 0 || extents.rows == 0 || extents.columns == 0;
  if (is_empty || (extents.batch <= 1 && !matrix.has_pointers())) matrix.batch_stride = 0;
  if (is_empty || extents.rows <= 1) matrix.row_stride = 0;
  if (is_empty || extents.columns <= 1) matrix.column_stride = 0;
  return matrix;
}

MatrixType packed_matrix(DType dtype, Layout layout, const MatrixExtents& extents) noexcept {
  MatrixType matrix{.dtype = dtype};
  const bool is_row = layout != Layout::column;
  matrix.row_stride = is_row ? extents.columns : 1;
  matrix.column_stride = is_row ? 1 : extents.rows;
  matrix.batch_stride = checked_multiply(extents.rows, extents.columns).value_or(0);
  matrix = normalize(matrix, extents);
  matrix.alignment = alignment_of(0, matrix);
  return matrix;
}

std::uint8_t alignment_of(std::uintptr_t address, const MatrixType& matrix) noexcept {
  // One direction is contiguous. The other stride is a distance between rows (or columns), even if
  // it is 1 (windows that slide by one element).
  const bool is_row_major = matrix.column_stride == 1;
  const bool is_column_major = !is_row_major && matrix.row_stride == 1;
  const std::int64_t row_stride = is_column_major ? 0 : matrix.row_stride;
  const std::int64_t column_stride = is_row_major ? 0 : matrix.column_stride;
  std::uint64_t bits = largest_alignment | address;
  for (const std::int64_t stride : {matrix.batch_stride, row_stride, column_stride}) {
    bits |= static_cast<std::uint64_t>(storage_bytes(matrix.dtype, stride));
  }
  return static_cast<std::uint8_t>(std::min(lowest_set_bit(bits), largest_alignment));
}

bool has_whole_bytes(const MatrixType& matrix) noexcept {
  const std::int64_t whole = whole_elements(matrix.dtype);
  int adjacent = 0;
  for (const std::int64_t stride : {matrix.batch_stride, matrix.row_stride, matrix.column_stride})
    if (stride % whole != 0 && (stride != 1 || ++adjacent > 1)) return false;
  return true;
}

Tensor make_view(const void* data, const MatrixType& matrix, const MatrixExtents& extents,
                 Device device) {
  const std::array shape{extents.batch, extents.rows, extents.columns};
  if (matrix.has_pointers())
    return Tensor(PointerArray{static_cast<const void* const*>(data), matrix.alignment},
                  matrix.dtype, shape, {matrix.row_stride, matrix.column_stride}, device);
  const std::array strides{matrix.batch_stride, matrix.row_stride, matrix.column_stride};
  return Tensor(data, matrix.dtype, shape, strides, device);
}

Tensor with_strides(const Tensor& tensor, const std::array<std::int64_t, 3>& shape,
                    const std::array<std::int64_t, 3>& strides) {
  if (tensor.has_pointers())
    return Tensor(
        PointerArray{static_cast<const void* const*>(tensor.data()), tensor.pointer_alignment()},
        tensor.dtype(), shape, {strides[1], strides[2]}, tensor.device());
  return Tensor(tensor.data(), tensor.dtype(), shape, strides, tensor.device());
}

MatrixType matrix_type(const Tensor& view) noexcept {
  return aligned_as(view, normalize(strides_of(view), extents_of(view)));
}

MatrixType spelled_matrix_type(const Tensor& view) noexcept {
  MatrixExtents extents = extents_of(view);
  extents.batch = std::max<std::int64_t>(extents.batch, 1);
  return aligned_as(view, normalize(strides_of(view), extents));
}

MatrixType normalize_reduced(MatrixType matrix, const MatrixExtents& own) noexcept {
  const auto& [batch, rows, columns] = own;
  if (batch != 0 && rows != 0 && columns != 0) return normalize(matrix, own);
  const auto packed = [](std::int64_t extent, std::int64_t below) {
    return extent == 1 ? 0 : std::max<std::int64_t>(below, 1);
  };
  matrix.column_stride = packed(columns, 1);
  matrix.row_stride = packed(rows, columns);
  matrix.batch_stride = packed(batch, rows * columns);
  return matrix;
}

MatrixType reduced_matrix_type(const Tensor& view) noexcept {
  return aligned_as(view, normalize_reduced(strides_of(view), extents_of(view)));
}

}  // namespace gemmery::operation
