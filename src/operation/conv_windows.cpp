// SPDX-License-Identifier: Apache-2.0
// Windows of fprop, dgrad and wgrad, and the phases of a strided dgrad.
#include "operation/conv_windows.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace gemmery::operation {
namespace {

using Numbers = std::array<std::int64_t, 3>;

Numbers wide(const Spatial& numbers) { return {numbers[0], numbers[1], numbers[2]}; }

// --- windows ------------------------------------------------------------------------------------

std::array<std::int64_t, 5> with_channels(const std::array<std::int64_t, 4>& strides) {
  return {strides[0], strides[1], strides[2], strides[3], 1};
}

std::int64_t images_of(const Convolution& convolution) {
  return convolution.batch == ConvBatch::images ? 1 : convolution.images;
}

// A window of pixels, each with its channels, and no taps.
Window pixels_alone(const Convolution& convolution, const Spatial& extents, std::int64_t channels,
                    const std::array<std::int64_t, 4>& strides) {
  return {.pixels = {images_of(convolution), extents[0], extents[1], extents[2]},
          .taps = {1, 1, 1, channels},
          .step = {1, 1, 1},
          .extent = wide(extents),
          .strides = with_channels(strides)};
}

// A window in x: pixels of y by taps of the filter.
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
    // Tap r of w is at the position of tap R-1-r of a correlation.
    window.origin[d] += std::int64_t{convolution.dilation[d]} * (convolution.filter[d] - 1);
    window.tap_step[d] = -window.tap_step[d];
  }
  return window;
}

// A window in w: filters by taps.
Window filters_by_taps(const Convolution& convolution, const std::array<std::int64_t, 4>& strides) {
  return {.pixels = {convolution.filters / convolution.groups, 1, 1, 1},
          .taps = {convolution.filter[0], convolution.filter[1], convolution.filter[2],
                   convolution.channels / convolution.groups},
          .tap_step = {1, 1, 1},
          .extent = wide(convolution.filter),
          .strides = with_channels(strides)};
}

Window with_taps_as_lanes(Window window) {
  window.are_lanes_pixels = false;
  return window;
}

// --- phases of dgrad ----------------------------------------------------------------------------

std::vector<WindowPhase> phases_along(const Convolution& convolution, std::size_t d) {
  const std::int64_t stride = convolution.stride[d];
  const std::int64_t dilation = convolution.dilation[d];
  const std::int64_t lower = convolution.lower[d];
  const std::int64_t common = std::gcd(stride, dilation);
  const std::int64_t tap_step = stride / common;
  // Each first tap belongs to another phase rho of pixels; other phases have no taps.
  std::vector<std::pair<std::int64_t, std::int64_t>> first_taps;  // (rho, tap)
  for (std::int64_t tap = 0; tap < std::min<std::int64_t>(tap_step, convolution.filter[d]); ++tap)
    first_taps.emplace_back(tap * dilation % stride, tap);
  std::ranges::sort(first_taps);
  std::vector<WindowPhase> phases;
  for (const auto& [rho, tap] : first_taps) {
    const std::int64_t first = ((rho - lower) % stride + stride) % stride;
    if (first >= convolution.image[d]) continue;
    phases.push_back({.first = first,
                      .count = (convolution.image[d] - first + stride - 1) / stride,
                      .tap = tap,
                      .tap_step = tap_step,
                      .taps = (convolution.filter[d] - tap + tap_step - 1) / tap_step,
                      .origin = (first + lower - tap * dilation) / stride,
                      .output_step = dilation / common});
  }
  return phases;
}

WindowPart part_of_phases(const Convolution& convolution,
                          const std::array<WindowPhase, 3>& phases) {
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
    const WindowPhase& phase = phases[d];
    counts[d] = a.pixels[d + 1] = phase.count;
    first[d] = phase.first;
    a.taps[d] = b.taps[d] = phase.taps;
    a.origin[d] = phase.origin;
    a.tap_step[d] = -phase.output_step;
    b.origin[d] = is_reversed ? convolution.filter[d] - 1 - phase.tap : phase.tap;
    b.tap_step[d] = is_reversed ? -phase.tap_step : phase.tap_step;
  }
  const bool is_strided = convolution.stride != Spatial{1, 1, 1};
  return {a, b,
          is_strided ? RowMap(counts, first, convolution.stride, convolution.image) : RowMap()};
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

WindowParts::WindowParts(const Convolution& convolution) : convolution_(convolution) {
  if (convolution.kind != ConvKind::dgrad) return;
  for (std::size_t d = 0; d < phases_.size(); ++d) phases_[d] = phases_along(convolution, d);
}

std::size_t WindowParts::size() const noexcept {
  if (convolution_.kind != ConvKind::dgrad) return 1;
  return phases_[0].size() * phases_[1].size() * phases_[2].size();
}

WindowPart WindowParts::operator[](std::size_t index) const {
  switch (convolution_.kind) {
    case ConvKind::fprop:
      return {images_by_taps(convolution_, convolution_.a_strides),
              filters_by_taps(convolution_, convolution_.b_strides), RowMap()};
    case ConvKind::dgrad: {
      const std::size_t above = index / phases_[2].size();
      return part_of_phases(convolution_, {phases_[0][above / phases_[1].size()],
                                           phases_[1][above % phases_[1].size()],
                                           phases_[2][index % phases_[2].size()]});
    }
    case ConvKind::wgrad:
      break;
  }
  return {with_taps_as_lanes(pixels_alone(convolution_, convolution_.output,
                                          convolution_.filters / convolution_.groups,
                                          convolution_.a_strides)),
          with_taps_as_lanes(images_by_taps(convolution_, convolution_.b_strides)), RowMap()};
}

}  // namespace gemmery::operation
