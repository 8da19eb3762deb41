// SPDX-License-Identifier: Apache-2.0
// The elements of a convolution's operand, addressed by pixel and tap.
#pragma once

#include <device/abi/window_params.hpp>

namespace gemmery::device {

/// The contribution of a pixel, or of a tap and a channel, to an element's offset and coordinates.
struct WindowPart {
  abi::Int64 offset;
  int at[3];
};

/// `dimensions`: of images, along width and height, and along depth if there are three.
template <int dimensions = 3>
__device__ __forceinline__ WindowPart window_pixel(const abi::WindowParams& window,
                                                   unsigned index) {
  WindowPart part;
#pragma unroll
  for (int d = 2; d >= 3 - dimensions; --d) {
    const unsigned rest = window.pixels[d].divide(index);
    part.at[d] = static_cast<int>(index - rest * window.pixels[d].divisor) * window.step[d] +
                 window.origin[d];
    index = rest;
  }
  part.offset = index * window.image_stride;
  return part;
}

template <int dimensions = 3>
__device__ __forceinline__ WindowPart window_tap(const abi::WindowParams& window, unsigned index) {
  WindowPart part;
  const unsigned tap = window.taps[2].divide(index);
  part.offset = (index - tap * window.taps[2].divisor) * window.channel_stride;
  const unsigned row = window.taps[1].divide(tap);
  part.at[2] = static_cast<int>(tap - row * window.taps[1].divisor) * window.tap_step[2];
  const unsigned slice = dimensions < 3 ? 0 : window.taps[0].divide(row);
  part.at[1] = static_cast<int>(row - slice * window.taps[0].divisor) * window.tap_step[1];
  part.at[0] = static_cast<int>(slice) * window.tap_step[0];
  return part;
}

/// The part with an offset in bytes that includes that of its coordinates.
template <int dimensions>
__device__ __forceinline__ WindowPart in_bytes(const abi::WindowParams& window, WindowPart part,
                                               int element_bytes) {
#pragma unroll
  for (int d = 3 - dimensions; d < 3; ++d) part.offset += part.at[d] * window.strides[d];
  part.offset *= element_bytes;
  return part;
}

/// Computes the offset of the element; false if it lies in padding.
template <int dimensions = 3>
__device__ __forceinline__ bool find_in_window(const abi::WindowParams& window,
                                               const WindowPart& pixel, const WindowPart& tap,
                                               abi::Int64& offset) {
  bool is_inside = true;
  abi::Int64 sum = pixel.offset + tap.offset;
#pragma unroll
  for (int d = 3 - dimensions; d < 3; ++d) {
    const int coordinate = pixel.at[d] + tap.at[d];
    // A negative coordinate is a large unsigned one.
    is_inside = is_inside && static_cast<unsigned>(coordinate) < window.extent[d];
    sum += coordinate * window.strides[d];
  }
  offset = sum;
  return is_inside;
}

}  // namespace gemmery::device
