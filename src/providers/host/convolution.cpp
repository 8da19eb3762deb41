// SPDX-License-Identifier: Apache-2.0
// Windows of fprop, dgrad and wgrad, and the phases of a strided dgrad.
#include "providers/host/convolution.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <optional>

#include "operation/convolution.hpp"
#include "platform/parallel.hpp"
#include "providers/host/number.hpp"

namespace gemmery::host {
namespace {

using operation::ConvExtents;
using operation::ConvTensor;
using operation::extents_of;

using Numbers = std::array<std::int64_t, 3>;

Numbers wide(const Spatial& numbers) { return {numbers[0], numbers[1], numbers[2]}; }

std::int64_t count_of(const std::array<std::int64_t, 4>& extents) {
  return extents[0] * extents[1] * extents[2] * extents[3];
}

// --- windows ------------------------------------------------------------------------------------

// The matrix of a batch begins one batch stride after the one before it.
const void* data_of(const Tensor& view, std::int64_t batch_stride, std::int64_t batch) {
  const std::int64_t bytes =
      batch * batch_stride * static_cast<std::int64_t>(byte_width(view.dtype()));
  return static_cast<const char*>(view.data()) + (view.data() == nullptr ? 0 : bytes);
}

std::array<std::int64_t, 5> with_channels(const std::array<std::int64_t, 4>& strides) {
  return {strides[0], strides[1], strides[2], strides[3], 1};
}

std::int64_t images_of(const Convolution& convolution) {
  return convolution.batch == ConvBatch::images ? 1 : convolution.images;
}

// A window over pixels, every one of them with its channels.
Window pixels_alone(const Convolution& convolution, const Spatial& extents, std::int64_t channels,
                    const std::array<std::int64_t, 4>& strides) {
  return {.pixels = {images_of(convolution), extents[0], extents[1], extents[2]},
          .taps = {1, 1, 1, channels},
          .step = {1, 1, 1},
          .extent = wide(extents),
          .strides = with_channels(strides)};
}

// The pixels of y by the taps of their filters, in x.
Window images_by_taps(const Convolution& convolution, const std::array<std::int64_t, 4>& strides) {
  Window window{.pixels = {images_of(convolution), convolution.output[0], convolution.output[1],
                           convolution.output[2]},
                .taps = {convolution.filter[0], convolution.filter[1], convolution.filter[2],
                         convolution.channels / convolution.groups},
                .step = wide(convolution.stride),
                .tap_step = wide(convolution.dilation),
                .extent = wide(convolution.image),
                .strides = with_channels(strides)};
  const bool is_reversed = convolution.mode == ConvMode::convolution;
  for (std::size_t d = 0; d < 3; ++d) {
    window.origin[d] = -std::int64_t{convolution.lower[d]};
    if (!is_reversed) continue;
    // Tap r of w lies where tap R-1-r of a correlation does.
    window.origin[d] += std::int64_t{convolution.dilation[d]} * (convolution.filter[d] - 1);
    window.tap_step[d] = -window.tap_step[d];
  }
  return window;
}

// Filters by their taps.
Window filters_by_taps(const Convolution& convolution, const std::array<std::int64_t, 4>& strides) {
  return {.pixels = {convolution.filters / convolution.groups, 1, 1, 1},
          .taps = {convolution.filter[0], convolution.filter[1], convolution.filter[2],
                   convolution.channels / convolution.groups},
          .tap_step = {1, 1, 1},
          .extent = wide(convolution.filter),
          .strides = with_channels(strides)};
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

Window with_taps_as_lanes(Window window) {
  window.are_lanes_pixels = false;
  return window;
}

// --- phases of dgrad ----------------------------------------------------------------------------

// One phase along a dimension: pixels first + stride * m, m < count, meet the taps tap + tap_step *
// j, j < taps, at origin + m - output_step * j of dy.
struct Phase {
  std::int64_t first, count;
  std::int64_t tap, tap_step, taps;
  std::int64_t origin, output_step;
};

// The tap below the stride's share that pixels of phase rho reach first; nothing if none does.
std::optional<std::int64_t> first_tap(std::int64_t rho, std::int64_t stride, std::int64_t dilation,
                                      std::int64_t tap_step) {
  for (std::int64_t tap = 0; tap < tap_step; ++tap)
    if (tap * dilation % stride == rho) return tap;
  return std::nullopt;
}

std::vector<Phase> phases_along(const Convolution& convolution, std::size_t d) {
  const std::int64_t stride = convolution.stride[d];
  const std::int64_t dilation = convolution.dilation[d];
  const std::int64_t lower = convolution.lower[d];
  const std::int64_t common = std::gcd(stride, dilation);
  const std::int64_t tap_step = stride / common;
  std::vector<Phase> phases;
  for (std::int64_t rho = 0; rho < stride; ++rho) {
    const std::int64_t first = ((rho - lower) % stride + stride) % stride;
    const auto tap = first_tap(rho, stride, dilation, tap_step);
    if (first >= convolution.image[d] || !tap || *tap >= convolution.filter[d]) continue;
    phases.push_back({.first = first,
                      .count = (convolution.image[d] - first + stride - 1) / stride,
                      .tap = *tap,
                      .tap_step = tap_step,
                      .taps = (convolution.filter[d] - *tap + tap_step - 1) / tap_step,
                      .origin = (first + lower - *tap * dilation) / stride,
                      .output_step = dilation / common});
  }
  return phases;
}

ProductPart part_of_phases(const GemmArguments& arguments, std::int64_t batch,
                           const std::array<Phase, 3>& phases) {
  const GemmProblem& problem = arguments.problem();
  const Convolution& convolution = *problem.convolution;
  const std::int64_t filters = convolution.filters / convolution.groups;
  Window a{.pixels = {images_of(convolution), 1, 1, 1},
           .taps = {1, 1, 1, filters},
           .step = {1, 1, 1},
           .extent = wide(convolution.output),
           .strides = with_channels(convolution.a_strides)};
  const auto& w = convolution.b_strides;
  Window b{.pixels = {convolution.channels / convolution.groups, 1, 1, 1},
           .taps = {1, 1, 1, filters},
           .extent = wide(convolution.filter),
           .strides = {1, w[1], w[2], w[3], w[0]}};
  Numbers counts{}, first{};
  const bool is_reversed = convolution.mode == ConvMode::convolution;
  for (std::size_t d = 0; d < 3; ++d) {
    const Phase& phase = phases[d];
    counts[d] = a.pixels[d + 1] = phase.count;
    first[d] = phase.first;
    a.taps[d] = b.taps[d] = phase.taps;
    a.origin[d] = phase.origin;
    a.tap_step[d] = -phase.output_step;
    b.origin[d] = is_reversed ? convolution.filter[d] - 1 - phase.tap : phase.tap;
    b.tap_step[d] = is_reversed ? -phase.tap_step : phase.tap_step;
  }
  const bool is_strided = convolution.stride != Spatial{1, 1, 1};
  return {
      {make_source(problem.a.dtype, data_of(arguments.a(), problem.a.batch_stride, batch), a, true),
       make_source(problem.b.dtype, data_of(arguments.b(), problem.b.batch_stride, batch), b,
                   true)},
      is_strided ? RowMap(counts, first, convolution.stride, convolution.image) : RowMap()};
}

std::vector<ProductPart> dgrad_parts(const GemmArguments& arguments, std::int64_t batch) {
  const Convolution& convolution = *arguments.problem().convolution;
  std::vector<ProductPart> parts;
  for (const Phase& depth : phases_along(convolution, 0))
    for (const Phase& height : phases_along(convolution, 1))
      for (const Phase& width : phases_along(convolution, 2))
        parts.push_back(part_of_phases(arguments, batch, {depth, height, width}));
  return parts;
}

ProductPart whole_part(const GemmArguments& arguments, std::int64_t batch) {
  const GemmProblem& problem = arguments.problem();
  const Convolution& convolution = *problem.convolution;
  const bool is_read = arguments.alpha() != 0;
  const bool is_wgrad = convolution.kind == ConvKind::wgrad;
  const Window a = is_wgrad ? with_taps_as_lanes(pixels_alone(
                                  convolution, convolution.output,
                                  convolution.filters / convolution.groups, convolution.a_strides))
                            : images_by_taps(convolution, convolution.a_strides);
  const Window b = is_wgrad ? with_taps_as_lanes(images_by_taps(convolution, convolution.b_strides))
                            : filters_by_taps(convolution, convolution.b_strides);
  return {{make_source(problem.a.dtype, data_of(arguments.a(), problem.a.batch_stride, batch), a,
                       is_read),
           make_source(problem.b.dtype, data_of(arguments.b(), problem.b.batch_stride, batch), b,
                       is_read)},
          RowMap()};
}

// --- infinities beside padding ------------------------------------------------------------------

bool has_padding(const Convolution& convolution) {
  for (std::size_t d = 0; d < 3; ++d) {
    const std::int64_t last = (std::int64_t{convolution.output[d]} - 1) * convolution.stride[d] +
                              (std::int64_t{convolution.filter[d]} - 1) * convolution.dilation[d];
    if (convolution.lower[d] > 0 || last >= convolution.image[d]) return true;
  }
  // dx beyond the last tap of dy.
  return convolution.kind == ConvKind::dgrad && convolution.filter != Spatial{1, 1, 1};
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

std::int64_t RowMap::operator[](std::int64_t row) const noexcept {
  if (is_identity_) return row;
  std::int64_t mapped = 0;
  std::int64_t scale = 1;
  for (std::size_t d = 3; d-- > 0;) {
    mapped += (row % counts_[d] * step_[d] + first_[d]) * scale;
    row /= counts_[d];
    scale *= image_[d];
  }
  return mapped + row * scale;
}

std::vector<ProductPart> product_parts(const GemmArguments& arguments, std::int64_t batch) {
  const GemmProblem& problem = arguments.problem();
  if (!problem.convolution) return {{panel_sources(arguments, batch), RowMap()}};
  if (problem.convolution->kind != ConvKind::dgrad) return {whole_part(arguments, batch)};
  if (arguments.alpha() == 0) return {};
  return dgrad_parts(arguments, batch);
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
