// SPDX-License-Identifier: Apache-2.0
// Packing of a convolution's operand: a panel's elements are gathered by pixel and tap.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "operation/window.hpp"
#include "providers/host/tile_kernels.hpp"

namespace gemmery::host {

using operation::Window;

inline constexpr std::int64_t most_panel_lanes = std::max(most_tile_rows, most_tile_columns);

// A panel's lanes and its part of the depth.
struct PanelRange {
  std::int64_t first_lane;
  int lanes;
  int width;
  std::int64_t first_depth;
  std::int64_t depth;
};

// For lanes that are pixels: runs of channels of one tap, for all lanes.
template <class T, class Stored, class Read>
void pack_pixels(const Window& window, const Stored* data, const PanelRange& range,
                 const Read& read, T* panel) {
  std::array<Window::Pixel, most_panel_lanes> pixels;
  for (int lane = 0; lane < range.lanes; ++lane)
    pixels[static_cast<std::size_t>(lane)] = window.pixel(range.first_lane + lane);
  std::array<const Stored*, most_panel_lanes> sources{};
  const std::int64_t channel_stride = window.strides[4];
  for (std::int64_t k = 0; k < range.depth;) {
    const Window::Tap tap = window.tap(range.first_depth + k);
    const std::int64_t count = std::min(tap.left, range.depth - k);
    for (int lane = 0; lane < range.lanes; ++lane) {
      const auto at = static_cast<std::size_t>(lane);
      const auto offset = window.find(pixels[at], tap);
      sources[at] = offset ? data + *offset : nullptr;
    }
    for (std::int64_t channel = 0; channel < count; ++channel, ++k)
      for (int lane = 0; lane < range.lanes; ++lane) {
        const Stored* const source = sources[static_cast<std::size_t>(lane)];
        panel[k * range.width + lane] =
            source == nullptr ? T{0} : read(source[channel * channel_stride]);
      }
  }
}

// For lanes that are taps: runs of channels of one tap, for every pixel.
template <class T, class Stored, class Read>
void pack_taps(const Window& window, const Stored* data, const PanelRange& range, const Read& read,
               T* panel) {
  std::array<Window::Tap, most_panel_lanes> runs;
  std::size_t run_count = 0;
  for (std::int64_t lane = 0; lane < range.lanes; lane += runs[run_count++].left) {
    Window::Tap& run = runs[run_count];
    run = window.tap(range.first_lane + lane);
    run.left = std::min<std::int64_t>(run.left, range.lanes - lane);
  }
  const std::int64_t channel_stride = window.strides[4];
  for (std::int64_t k = 0; k < range.depth; ++k) {
    const Window::Pixel pixel = window.pixel(range.first_depth + k);
    T* lane = panel + k * range.width;
    for (std::size_t run = 0; run < run_count; lane += runs[run++].left) {
      const auto offset = window.find(pixel, runs[run]);
      for (std::int64_t channel = 0; channel < runs[run].left; ++channel)
        lane[channel] = offset ? read(data[*offset + channel * channel_stride]) : T{0};
    }
  }
}

template <class T, class Stored, class Read>
void pack_window(const Window& window, const Stored* data, const PanelRange& range,
                 const Read& read, T* panel) {
  if (range.lanes < range.width) std::fill_n(panel, range.depth * range.width, T{0});
  if (window.are_lanes_pixels) return pack_pixels(window, data, range, read, panel);
  pack_taps(window, data, range, read, panel);
}

}  // namespace gemmery::host
