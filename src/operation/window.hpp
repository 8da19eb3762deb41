// SPDX-License-Identifier: Apache-2.0
// Addresses the elements of a convolution's operand by a pixel and a tap of the filter.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace gemmery::operation {

// Pixels are numbered over images, depth, height, width; taps over depth, height, width, channels.
// Along a dimension the element of a pixel and a tap has the coordinate
//
//   pixel * step + origin + tap * tap_step
//
// Elements with a coordinate outside of the tensor lie in padding and are 0.
struct Window {
  std::array<std::int64_t, 4> pixels{1, 1, 1, 1};
  std::array<std::int64_t, 4> taps{1, 1, 1, 1};
  std::array<std::int64_t, 3> step{};
  std::array<std::int64_t, 3> origin{};
  std::array<std::int64_t, 3> tap_step{};
  std::array<std::int64_t, 3> extent{1, 1, 1};
  // In elements: strides of images, depth, height, width, channels.
  std::array<std::int64_t, 5> strides{};
  bool are_lanes_pixels = true;  // otherwise lanes are taps

  // The contribution of a pixel to the offset of an element, and to its coordinates.
  struct Pixel {
    std::int64_t offset;
    std::array<std::int64_t, 3> base;
  };
  Pixel pixel(std::int64_t index) const noexcept {
    Pixel place{};
    for (std::size_t d = 3; d > 0; --d) {
      place.base[d - 1] = index % pixels[d] * step[d - 1] + origin[d - 1];
      index /= pixels[d];
    }
    place.offset = index * strides[0];
    return place;
  }

  // A tap and a channel; `left` counts channels of the same tap from this one on.
  struct Tap {
    std::int64_t offset;
    std::int64_t left;
    std::array<std::int64_t, 3> shift;
  };
  Tap tap(std::int64_t index) const noexcept {
    Tap place{};
    const std::int64_t channel = index % taps[3];
    index /= taps[3];
    place.offset = channel * strides[4];
    place.left = taps[3] - channel;
    for (std::size_t d = 3; d > 0; --d) {
      place.shift[d - 1] = index % taps[d - 1] * tap_step[d - 1];
      index /= taps[d - 1];
    }
    return place;
  }

  // The offset of the element; nullopt in padding.
  std::optional<std::int64_t> find(const Pixel& pixel, const Tap& tap) const noexcept {
    std::int64_t offset = pixel.offset + tap.offset;
    for (std::size_t d = 0; d < 3; ++d) {
      const std::int64_t coordinate = pixel.base[d] + tap.shift[d];
      if (coordinate < 0 || coordinate >= extent[d]) return std::nullopt;
      offset += coordinate * strides[d + 1];
    }
    return offset;
  }
  // The same by lane and depth.
  std::optional<std::int64_t> find_at(std::int64_t lane, std::int64_t depth) const noexcept {
    return are_lanes_pixels ? find(pixel(lane), tap(depth)) : find(pixel(depth), tap(lane));
  }
};

}  // namespace gemmery::operation
