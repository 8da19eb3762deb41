// SPDX-License-Identifier: Apache-2.0
// Sizes and strides of packed layouts.
#include "describe/packed_operands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>
#include <string>

#include "core/arithmetic.hpp"
#include "describe/refusal.hpp"

namespace gemmery::describe {
namespace {

Tensor view_of(const void* data, DType dtype, const std::array<std::int64_t, 3>& shape,
               const std::array<std::int64_t, 3>& strides, Device device) {
  return Tensor(data, dtype, shape, strides, device);
}

}  // namespace

std::size_t packed_bytes(std::string_view operand, std::initializer_list<std::int64_t> extents,
                         DType dtype) {
  const auto width = static_cast<std::int64_t>(byte_width(dtype));
  std::optional<std::int64_t> bytes = width;
  for (const std::int64_t extent : extents)
    bytes = bytes ? checked_multiply(*bytes, extent) : std::nullopt;
  if (bytes) return static_cast<std::size_t>(*bytes);
  refuse(operand, "at most 2^63 - 1 bytes",
         fmt::format("{} elements of {} bytes", fmt::join(extents, " x "), width), {},
         ErrorKind::out_of_memory);
}

Tensor packed_view(const void* data, DType dtype, Layout layout, const MatrixShape& shape,
                   std::int64_t batch, Device device) {
  const bool is_row_major = layout == Layout::RowMajor;
  const auto& [rows, columns] = shape;
  return view_of(
      data, dtype, {batch, rows, columns},
      {rows * columns, is_row_major ? columns : 1, is_row_major ? std::int64_t{1} : rows}, device);
}

Tensor bias_view(const void* data, DType dtype, const MatrixShape& shape, std::int64_t batch,
                 Device device) {
  return view_of(data, dtype, {batch, shape.rows, shape.columns}, {shape.columns, 0, 1}, device);
}

Tensor interleaved_view(const void* data, DType dtype, std::int64_t lines, std::int64_t length,
                        Device device) {
  return view_of(data, dtype, {length / interleave, lines, interleave},
                 {lines * interleave, interleave, 1}, device);
}

Tensor line_view(const void* data, DType dtype, std::int64_t lines, std::int64_t length,
                 Device device) {
  return view_of(data, dtype, {length / interleave, lines, interleave}, {interleave, length, 1},
                 device);
}

}  // namespace gemmery::describe
