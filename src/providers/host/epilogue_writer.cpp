// SPDX-License-Identifier: Apache-2.0
// Tiles are written along the direction in which out is contiguous, a line of at most 64 elements
// at a time.
#include "providers/host/epilogue_writer.hpp"

#include <algorithm>
#include <array>

#include "providers/host/line.hpp"
#include "providers/host/number.hpp"

namespace gemmery::host {
namespace {

constexpr int most_line = 64;

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

// A tile whose lines run along out's contiguous direction.
template <class Sum>
struct Lines {
  const Sum* sums;
  int count, length;
  int line_stride, element_stride;  // in accumulators
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
  return {view.dtype(), first_of(view, batch), view.stride(1), view.stride(2)};
}

void* first_of(const Tensor& view, std::int64_t batch) {
  if (view.data() == nullptr) return nullptr;
  if (view.has_pointers())
    return view.element_count() == 0 ? nullptr : static_cast<void* const*>(view.data())[batch];
  return static_cast<std::byte*>(view.data()) + storage_bytes(view.dtype(), batch * view.stride(0));
}

std::int64_t whole_row(const Tensor& view, std::int64_t row) {
  const std::int64_t whole = whole_elements(view.dtype());
  return view.stride(1) % whole == 0 ? row : row - row % whole;
}

EpilogueWriter::EpilogueWriter(const GemmArguments& arguments, std::int64_t batch)
    : out(matrix_of(arguments.out(), batch)),
      c(arguments.c() && arguments.beta() != 0 ? matrix_of(*arguments.c(), batch)
                                               : MatrixView{out.dtype, nullptr, 0, 0}),
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
