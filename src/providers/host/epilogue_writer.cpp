// SPDX-License-Identifier: Apache-2.0
// Tiles are written along the direction in which out is contiguous, a line of at most 64 elements
// at a time.
#include "providers/host/epilogue_writer.hpp"

#include <algorithm>
#include <array>

#include "providers/host/number.hpp"

namespace gemmery::host {
namespace {

constexpr int most_line = 64;

// `count` elements, `stride` apart.
struct Line {
  DType dtype;
  void* data;
  std::int64_t first;
  std::int64_t stride;
  int count;
};

template <class Stored, class Convert, class Compute>
void store_converted(const Line& line, const Compute* values, const Convert& convert) {
  Stored* element = static_cast<Stored*>(line.data) + line.first;
  if (line.stride == 1) {
    for (int i = 0; i < line.count; ++i) element[i] = convert(values[i]);
    return;
  }
  for (int i = 0; i < line.count; ++i) element[i * line.stride] = convert(values[i]);
}

template <class Stored, DType dtype>
Stored narrow(float value) {
  constexpr FloatFormat format = float_format(dtype);
  return static_cast<Stored>(
      encode_float<format.exponent_bits, format.mantissa_bits, format.has_infinity>(value));
}
template <class Stored, DType dtype>
Stored narrow(double value) {
  return static_cast<Stored>(encode(float_format(dtype), value));
}

template <class Compute>
void store_line(const Line& line, const Compute* values) {
  const auto as = []<class Stored>(Stored) {
    return [](Compute value) { return static_cast<Stored>(value); };
  };
  const auto saturated = []<class Stored>(Stored) {
    return [](Compute value) { return saturate<Stored>(value); };
  };
  switch (line.dtype) {
    case DType::float64:
      return store_converted<double>(line, values, as(double{}));
    case DType::float32:
      return store_converted<float>(line, values, as(float{}));
    case DType::float16:
      return store_converted<std::uint16_t>(
          line, values, [](Compute v) { return narrow<std::uint16_t, DType::float16>(v); });
    case DType::bfloat16:
      return store_converted<std::uint16_t>(
          line, values, [](Compute v) { return narrow<std::uint16_t, DType::bfloat16>(v); });
    case DType::float8_e4m3fn:
      return store_converted<std::uint8_t>(
          line, values, [](Compute v) { return narrow<std::uint8_t, DType::float8_e4m3fn>(v); });
    case DType::float8_e5m2:
      return store_converted<std::uint8_t>(
          line, values, [](Compute v) { return narrow<std::uint8_t, DType::float8_e5m2>(v); });
    case DType::int8:
      return store_converted<std::int8_t>(line, values, saturated(std::int8_t{}));
    case DType::uint8:
      return store_converted<std::uint8_t>(line, values, saturated(std::uint8_t{}));
    case DType::int32:
      return store_converted<std::int32_t>(line, values, saturated(std::int32_t{}));
    case DType::uint32:
      return store_converted<std::uint32_t>(line, values, saturated(std::uint32_t{}));
    case DType::float8_e8m0fnu:
    case DType::float4_e2m1fn:
      break;
  }
}

template <class Compute>
void add_scaled(Compute* values, Compute beta, const Line& c) {
  for (int i = 0; i < c.count; ++i)
    values[i] += beta * static_cast<Compute>(load(c.dtype, c.data, c.first + i * c.stride));
}

template <class Compute>
void add_scaled_line(Compute* values, Compute beta, const Line& c) {
  if constexpr (std::is_same_v<Compute, float>) {
    if (c.dtype == DType::float32 && c.stride == 1) {
      const float* element = static_cast<const float*>(c.data) + c.first;
      for (int i = 0; i < c.count; ++i) values[i] += beta * element[i];
      return;
    }
  }
  add_scaled(values, beta, c);
}

// A tile whose lines run along out's contiguous direction, whichever that is.
template <class Sum>
struct Lines {
  const Sum* sums;
  int count, length;
  int line_stride, element_stride;  // in sums
};

template <class Sum, class Compute>
void write_lines(const EpilogueWriter& writer, const Lines<Sum>& lines, Line out,
                 std::int64_t out_step, Line c, std::int64_t c_step) {
  const auto alpha = static_cast<Compute>(writer.alpha);
  const auto beta = static_cast<Compute>(writer.beta);
  std::array<Compute, most_line> values;
  for (int line = 0; line < lines.count; ++line, out.first += out_step, c.first += c_step) {
    const Sum* sums = lines.sums + line * lines.line_stride;
    for (int i = 0; i < lines.length; ++i)
      values[static_cast<std::size_t>(i)] =
          alpha * static_cast<Compute>(sums[i * lines.element_stride]);
    if (c.data != nullptr) add_scaled_line(values.data(), beta, c);
    store_line(out, values.data());
  }
}

template <class Sum, class Compute>
void write_tile(const EpilogueWriter& writer, const FinishedTile<Sum>& tile) {
  static_assert(most_tile_columns <= most_line && most_tile_rows <= most_line);
  const MatrixView& out = writer.out;
  const MatrixView& c = writer.c;
  const std::int64_t out_first = tile.row * out.row_stride + tile.column * out.column_stride;
  const std::int64_t c_first = tile.row * c.row_stride + tile.column * c.column_stride;
  const bool by_columns = out.row_stride == 1 && out.column_stride != 1;
  if (by_columns) {
    const Lines<Sum> lines{tile.sums, tile.columns, tile.rows, 1, tile.row_stride};
    return write_lines<Sum, Compute>(
        writer, lines, {out.dtype, out.data, out_first, out.row_stride, tile.rows},
        out.column_stride, {c.dtype, c.data, c_first, c.row_stride, tile.rows}, c.column_stride);
  }
  const Lines<Sum> lines{tile.sums, tile.rows, tile.columns, tile.row_stride, 1};
  write_lines<Sum, Compute>(
      writer, lines, {out.dtype, out.data, out_first, out.column_stride, tile.columns},
      out.row_stride, {c.dtype, c.data, c_first, c.column_stride, tile.columns}, c.row_stride);
}

}  // namespace

MatrixView matrix_of(const Tensor& view, std::int64_t batch) {
  if (view.data() == nullptr)
    return {view.dtype(), nullptr, view.stride(1), view.stride(2)};  // no elements
  const auto offset = batch * view.stride(0) * static_cast<std::int64_t>(byte_width(view.dtype()));
  return {view.dtype(), static_cast<std::byte*>(view.data()) + offset, view.stride(1),
          view.stride(2)};
}

EpilogueWriter::EpilogueWriter(const GemmArguments& arguments, std::int64_t batch)
    : out(matrix_of(arguments.out(), batch)),
      c(arguments.c() ? matrix_of(*arguments.c(), batch) : MatrixView{out.dtype, nullptr, 0, 0}),
      alpha(arguments.alpha()),
      beta(arguments.beta()) {}

void EpilogueWriter::operator()(const FinishedTile<float>& tile) const {
  write_tile<float, float>(*this, tile);
}
void EpilogueWriter::operator()(const FinishedTile<double>& tile) const {
  write_tile<double, double>(*this, tile);
}
void EpilogueWriter::operator()(const FinishedTile<std::int32_t>& tile) const {
  write_tile<std::int32_t, double>(*this, tile);
}

}  // namespace gemmery::host
