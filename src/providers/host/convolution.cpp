// SPDX-License-Identifier: Apache-2.0
// Panels of a convolution's windows, and its sums by the definition.
#include "providers/host/convolution.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "platform/parallel.hpp"
#include "providers/host/number.hpp"

namespace gemmery::host {
namespace {

using operation::RowMap;
using operation::Window;

std::int64_t count_of(const std::array<std::int64_t, 4>& extents) {
  return extents[0] * extents[1] * extents[2] * extents[3];
}

// Matrix `batch` begins `batch` batch strides after the first one.
const void* data_of(const Tensor& view, std::int64_t batch_stride, std::int64_t batch) {
  const std::int64_t bytes = storage_bytes(view.dtype(), batch * batch_stride);
  return static_cast<const char*>(view.data()) + (view.data() == nullptr ? 0 : bytes);
}

PanelSource make_source(DType dtype, const void* data, const Window& window, bool is_read) {
  const std::int64_t pixels = count_of(window.pixels);
  const std::int64_t taps = count_of(window.taps);
  PanelSource source{.dtype = dtype,
                     .data = data,
                     .lanes = window.are_lanes_pixels ? pixels : taps,
                     .depth = window.are_lanes_pixels ? taps : pixels,
                     .lane_stride = 0,
                     .depth_stride = 0,
                     .window = window};
  if (!is_read) source.depth = 0;
  return source;
}

// --- infinities beside padding ------------------------------------------------------------------

// True if a tap may lie outside of its image; pixels of dx may read beyond dy on any side.
bool has_padding(const Convolution& convolution) {
  if (convolution.kind == ConvKind::dgrad) return true;
  for (std::size_t d = 0; d < 3; ++d) {
    const std::int64_t last = (std::int64_t{convolution.output[d]} - 1) * convolution.stride[d] +
                              (std::int64_t{convolution.filter[d]} - 1) * convolution.dilation[d];
    if (convolution.lower[d] > 0 || last >= convolution.image[d]) return true;
  }
  return false;
}

bool has_nonfinite(const PanelSource& source) {
  if (is_integer(source.dtype)) return false;
  std::atomic<bool> found{false};
  platform::parallel_for(
      source.lanes, 1 + 65536 / (source.depth + 1), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t lane = begin; lane < end && !found; ++lane)
          for (std::int64_t depth = 0; depth < source.depth; ++depth) {
            const auto offset = source.window->find_at(lane, depth);
            if (offset && !std::isfinite(load(source.dtype, source.data, *offset))) found = true;
          }
      });
  return found;
}

}  // namespace

ProductParts::ProductParts(const GemmArguments& arguments, std::int64_t batch)
    : arguments_(&arguments), batch_(batch) {
  if (arguments.problem().convolution) windows_.emplace(*arguments.problem().convolution);
}

ProductPart ProductParts::operator[](std::size_t index) const {
  const GemmArguments& arguments = *arguments_;
  const GemmProblem& problem = arguments.problem();
  if (!windows_) return {panel_sources(arguments, batch_), RowMap()};
  const operation::WindowPart part = (*windows_)[index];
  const bool is_read = arguments.alpha() != 0;
  return {{make_source(problem.a.dtype, data_of(arguments.a(), problem.a.batch_stride, batch_),
                       part.a, is_read),
           make_source(problem.b.dtype, data_of(arguments.b(), problem.b.batch_stride, batch_),
                       part.b, is_read)},
          part.rows};
}

bool may_multiply_padding(const GemmArguments& arguments, std::int64_t batch) {
  const GemmProblem& problem = arguments.problem();
  if (!problem.convolution || !has_padding(*problem.convolution)) return false;
  const bool is_wgrad = problem.convolution->kind == ConvKind::wgrad;
  return std::ranges::any_of(product_parts(arguments, batch), [&](const ProductPart& part) {
    return has_nonfinite(is_wgrad ? part.panels.a : part.panels.b);
  });
}

DefinedSum defined_sum(const PanelPair& panels, std::int64_t row, std::int64_t column,
                       PackedValue magnitudes) {
  const auto& [a, b] = panels;
  const MagnitudeRange a_range = magnitude_range(a.dtype, magnitudes);
  const MagnitudeRange b_range = magnitude_range(b.dtype, magnitudes);
  DefinedSum sum;
  DoubleDouble exact;
  for (std::int64_t depth = 0; depth < a.depth; ++depth) {
    const auto a_offset = a.window->find_at(row, depth);
    const auto b_offset = b.window->find_at(column, depth);
    const double x = a_offset ? load(a.dtype, a.data, *a_offset) : 0;
    const double y = b_offset ? load(b.dtype, b.data, *b_offset) : 0;
    if (!a_offset || !b_offset) {
      sum.may_be_nan = sum.may_be_nan || !std::isfinite(x) || !std::isfinite(y);
      continue;
    }
    exact = add(exact, drop_low_of_nonfinite(multiply_exactly(x, y)));
    if (magnitudes != PackedValue::itself) sum.magnitude += a_range.clamp(x) * b_range.clamp(y);
  }
  sum.high = exact.high;
  sum.low = exact.low;
  return sum;
}

}  // namespace gemmery::host
