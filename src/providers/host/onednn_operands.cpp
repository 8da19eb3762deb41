// SPDX-License-Identifier: Apache-2.0
// Types, strides and conversions of operands.
#include "providers/host/onednn_operands.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "platform/host_info.hpp"
#include "platform/parallel.hpp"
#include "providers/host/epilogue_writer.hpp"
#include "providers/host/number.hpp"

namespace gemmery::host {
namespace {

// --- types ---

bool is_exact_in_bfloat16(DType dtype) {
  return dtype == DType::bfloat16 || dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2;
}

DataType integer_type(DType dtype) { return dtype == DType::uint8 ? DataType::u8 : DataType::s8; }

// Without them oneDNN takes four times as long as for float32 (1024^3, two cores with AVX-512 and
// no avx512_bf16).
bool has_bfloat16_instructions() {
  return platform::host_product_rate(DType::bfloat16) > platform::host_product_rate(DType::float32);
}

}  // namespace

ComputeTypes compute_types(DType a, DType b) {
  if (is_integer(a)) return {integer_type(a), integer_type(b), DataType::s32};
  const bool in_bfloat16 = is_exact_in_bfloat16(a) && is_exact_in_bfloat16(b) &&
                           has_bfloat16_instructions() &&
                           onednn::multiplies(DataType::bf16, DataType::bf16, DataType::f32);
  const DataType type = in_bfloat16 ? DataType::bf16 : DataType::f32;
  return {type, type, DataType::f32};
}

// --- subnormal numbers ---

namespace {

// 1 for an element of bfloat16 that is neither 0 nor normal.
std::uint16_t is_subnormal_bfloat16(std::uint16_t code) {
  const auto without_sign_or_zero = static_cast<std::uint16_t>((code & 0x7fff) - 1);
  return without_sign_or_zero < 0x7f ? 1 : 0;
}

bool row_has_subnormals(const MatrixView& matrix, std::int64_t row, std::int64_t columns) {
  const auto* const first =
      static_cast<const std::uint16_t*>(matrix.data) + row * matrix.row_stride;
  // No early exit, and nothing wider than the elements: this loop runs at the speed of memory.
  std::uint16_t found = 0;
  if (matrix.column_stride == 1) {
    for (std::int64_t column = 0; column < columns; ++column)
      found |= is_subnormal_bfloat16(first[column]);
  } else {
    for (std::int64_t column = 0; column < columns; ++column)
      found |= is_subnormal_bfloat16(first[column * matrix.column_stride]);
  }
  return found != 0;
}

// A part of the rows that are adjacent in memory is one row.
bool rows_have_subnormals(const MatrixView& matrix, std::int64_t begin, std::int64_t end,
                          std::int64_t columns) {
  if (matrix.column_stride == 1 && matrix.row_stride == columns)
    return row_has_subnormals(
        {matrix.dtype, static_cast<std::uint16_t*>(matrix.data) + begin * columns, 0, 1}, 0,
        (end - begin) * columns);
  for (std::int64_t row = begin; row < end; ++row)
    if (row_has_subnormals(matrix, row, columns)) return true;
  return false;
}

// The matrix with its contiguous direction as rows.
MatrixView along_memory(MatrixView matrix, std::int64_t& rows, std::int64_t& columns) {
  if (matrix.column_stride == 1 || matrix.row_stride != 1) return matrix;
  std::swap(rows, columns);
  std::swap(matrix.row_stride, matrix.column_stride);
  return matrix;
}

bool has_subnormals(const Tensor& operand) {
  if (operand.dtype() != DType::bfloat16) return false;
  const std::int64_t batches = operand.stride(0) == 0 ? 1 : operand.extent(0);
  std::atomic<bool> found{false};
  for (std::int64_t batch = 0; batch < batches && !found; ++batch) {
    std::int64_t rows = operand.extent(1);
    std::int64_t columns = operand.extent(2);
    const MatrixView matrix = along_memory(matrix_of(operand, batch), rows, columns);
    platform::parallel_for(rows, 1 + 65536 / (columns + 1),
                           [&](std::int64_t begin, std::int64_t end) {
                             if (!found && rows_have_subnormals(matrix, begin, end, columns))
                               found = true;
                           });
  }
  return found;
}

}  // namespace

ComputeTypes compute_types_of(const Tensor& a, const Tensor& b) {
  const ComputeTypes types = compute_types(a.dtype(), b.dtype());
  if (types.a != DataType::bf16) return types;
  if (!has_subnormals(a) && !has_subnormals(b)) return types;
  return {DataType::f32, DataType::f32, DataType::f32};
}

DataType storage_type(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return DataType::f32;
    case DType::bfloat16:
      return DataType::bf16;
    case DType::int32:
      return DataType::s32;
    case DType::int8:
      return DataType::s8;
    case DType::uint8:
      return DataType::u8;
    default:
      return DataType::undefined;
  }
}

// --- memory ---

std::optional<OperandShape> in_place_shape(const MatrixType& matrix, const Extents& extents) {
  if (matrix.has_pointers()) return std::nullopt;
  const bool is_row_major = matrix.column_stride == 1 || extents.columns <= 1;
  const bool is_column_major = matrix.row_stride == 1 || extents.rows <= 1;
  if (!is_row_major && !is_column_major) return std::nullopt;
  const std::int64_t line = is_row_major ? extents.columns : extents.rows;
  const std::int64_t lines = is_row_major ? extents.rows : extents.columns;
  const std::int64_t stored_step = is_row_major ? matrix.row_stride : matrix.column_stride;
  const std::int64_t step = lines <= 1 ? line : stored_step;
  if (step < line) return std::nullopt;
  const bool is_broadcast = extents.batches > 1 && matrix.batch_stride == 0;
  const std::int64_t packed = step * lines;
  const std::int64_t batch_step =
      extents.batches <= 1 || is_broadcast ? packed : matrix.batch_stride;
  if (batch_step < packed) return std::nullopt;
  return OperandShape{
      .type = storage_type(matrix.dtype),
      .extents = {is_broadcast ? 1 : extents.batches, extents.rows, extents.columns},
      .strides = {batch_step, is_row_major ? step : 1, is_row_major ? 1 : step}};
}

OperandShape packed_shape(DataType type, const Extents& extents) {
  return {.type = type,
          .extents = {extents.batches, extents.rows, extents.columns},
          .strides = {extents.rows * extents.columns, extents.columns, 1}};
}

bool is_converted(const MatrixType& matrix, DataType compute) {
  return storage_type(matrix.dtype) != compute;
}

bool fits(const MatrixType& matrix, const Extents& extents, DataType compute) {
  return is_converted(matrix, compute) || in_place_shape(matrix, extents).has_value();
}

// --- conversion of operands ---

namespace {

template <class Stored, class Target, class Convert>
void convert_row(const MatrixView& source, std::int64_t row, std::int64_t columns, Target* packed,
                 const Convert& convert) {
  const Stored* element = static_cast<const Stored*>(source.data) + row * source.row_stride;
  if (source.column_stride == 1) {
    for (std::int64_t column = 0; column < columns; ++column)
      packed[column] = convert(element[column]);
    return;
  }
  for (std::int64_t column = 0; column < columns; ++column)
    packed[column] = convert(element[column * source.column_stride]);
}

template <class Stored, class Read>
void convert_row_to(const MatrixView& source, std::int64_t row, std::int64_t columns,
                    DataType compute, void* packed, const Read& read) {
  if (compute == DataType::f32)
    return convert_row<Stored>(source, row, columns, static_cast<float*>(packed), read);
  // Exact: no rounding happens.
  const auto to_bits = [&](Stored element) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(read(element)) >> 16);
  };
  convert_row<Stored>(source, row, columns, static_cast<std::uint16_t*>(packed), to_bits);
}

void convert_any_row(const MatrixView& source, std::int64_t row, std::int64_t columns,
                     DataType compute, void* packed) {
  switch (source.dtype) {
    case DType::float32:
      return convert_row_to<float>(source, row, columns, compute, packed,
                                   [](float v) { return v; });
    case DType::float16:
      return convert_row_to<std::uint16_t>(source, row, columns, compute, packed, from_float16);
    case DType::bfloat16:
      return convert_row_to<std::uint16_t>(source, row, columns, compute, packed, from_bfloat16);
    case DType::float8_e4m3fn:
      return convert_row_to<std::uint8_t>(source, row, columns, compute, packed,
                                          from_float8_e4m3fn);
    case DType::float8_e5m2:
      return convert_row_to<std::uint8_t>(source, row, columns, compute, packed, from_float8_e5m2);
    case DType::int8:
    case DType::uint8:
      return convert_row<std::uint8_t>(source, row, columns, static_cast<std::uint8_t*>(packed),
                                       [](std::uint8_t v) { return v; });
    default:
      return;  // no other type is copied (see onednn_serves_types)
  }
}

std::size_t width_of(DataType type) {
  return type == DataType::bf16 ? 2 : type == DataType::f32 || type == DataType::s32 ? 4 : 1;
}

}  // namespace

Presented present_copy(const Tensor& view, DataType compute, const Padding& padding,
                       const CopyPlace& place) {
  const Extents stored{view.stride(0) == 0 ? 1 : view.extent(0), view.extent(1) + padding.rows,
                       view.extent(2) + padding.columns};
  const std::size_t width = width_of(compute);
  const auto row_bytes = static_cast<std::size_t>(stored.columns) * width;
  const std::int64_t rows = stored.batches * stored.rows;
  auto* packed = place.scratch.reserve<std::byte>(rows * static_cast<std::int64_t>(row_bytes),
                                                  place.operand, "a converted copy");
  const auto copy_row = [&](const MatrixView& matrix, std::int64_t row, std::byte* target) {
    const std::int64_t columns = row < view.extent(1) ? view.extent(2) : 0;
    if (columns > 0) convert_any_row(matrix, row, columns, compute, target);
    std::byte* const padded = target + static_cast<std::size_t>(columns) * width;
    std::fill(padded, target + row_bytes, std::byte{0});
  };
  platform::parallel_for(
      rows, 1 + 65536 / (stored.columns + 1), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end;) {
          const std::int64_t first = row / stored.rows * stored.rows;  // of the batch
          const MatrixView matrix = matrix_of(view, row / stored.rows);
          for (; row < std::min(end, first + stored.rows); ++row)
            copy_row(matrix, row - first, packed + static_cast<std::size_t>(row) * row_bytes);
        }
      });
  return {packed_shape(compute, stored), packed};
}

Presented present(const Tensor& view, const MatrixType& matrix, DataType compute,
                  const Padding& padding, const CopyPlace& place) {
  if (is_converted(matrix, compute) || !padding.is_none())
    return present_copy(view, compute, padding, place);
  return {in_place_shape(matrix, {view.extent(0), view.extent(1), view.extent(2)}).value(),
          view.data()};
}

}  // namespace gemmery::host
