// SPDX-License-Identifier: Apache-2.0
// The sources of A and B of a convolution for load_operand (tma_operand.cuh): boxes of images in
// im2col mode, and boxes of filters. `dimensions` is the number of spatial ones.
#pragma once

#include <device/abi/sm90_conv_params.hpp>
#include <device/ptx/tma.cuh>

namespace gemmery::device {

/// A pixel of an image, width first.
template <int dimensions>
struct FirstPixel {
  int at[dimensions];
  int image;
};

/// The pixel with this number.
template <int dimensions>
__device__ __forceinline__ FirstPixel<dimensions> count_pixels(const abi::TmaWindow& window,
                                                               unsigned pixel) {
  FirstPixel<dimensions> first;
#pragma unroll
  for (int d = 2; d > 2 - dimensions; --d) {
    const unsigned rest = window.pixels[d].divide(pixel);
    first.at[2 - d] = static_cast<int>(pixel - rest * window.pixels[d].divisor);
    pixel = rest;
  }
  first.image = static_cast<int>(pixel);
  return first;
}

/// The first pixel of a copy, before the offset of a tap, in coordinates of the map.
template <int dimensions>
__device__ __forceinline__ FirstPixel<dimensions> find_pixel(const abi::TmaWindow& window,
                                                             unsigned pixel, unsigned batch) {
  FirstPixel<dimensions> first = count_pixels<dimensions>(window, pixel);
#pragma unroll
  for (int d = 2; d > 2 - dimensions; --d)
    first.at[2 - d] = first.at[2 - d] * window.step[d] + window.lower[d];
  first.image += static_cast<int>(batch * window.batch_images);
  return first;
}

/// A tap and one of its channels. Offsets are in the order of FirstPixel.
template <int dimensions>
struct TapPlace {
  int channel;
  unsigned short offset[dimensions];
  int in_filter;  // coordinate of the tap in the map of filters
};

template <int dimensions>
__device__ __forceinline__ TapPlace<dimensions> find_tap(const abi::TmaWindow& window,
                                                         const abi::TmaFilters& filters,
                                                         unsigned index) {
  TapPlace<dimensions> place;
  unsigned tap = window.taps[2].divide(index);
  place.channel = static_cast<int>(index - tap * window.taps[2].divisor);
  if (tap >= window.tap_count) {
    place.channel = abi::TmaWindow::beyond_channels;
    tap = 0;  // offsets must be legal
  }
  place.in_filter = filters.first;
#pragma unroll
  for (int d = 2; d > 2 - dimensions; --d) {
    unsigned here = tap;
    if (d > 3 - dimensions) {  // not for the outermost dimension
      tap = window.taps[d - 1].divide(tap);
      here -= tap * window.taps[d - 1].divisor;
    }
    const auto step = static_cast<int>(here);
    place.offset[2 - d] =
        static_cast<unsigned short>(window.first_offset[d] + step * window.offset_step[d]);
    place.in_filter += step * filters.step[d];
  }
  return place;
}

template <int dimensions>
__device__ __forceinline__ ptx::PixelPlace<dimensions> pixel_place(
    const FirstPixel<dimensions>& first, const TapPlace<dimensions>& tap, int first_channel) {
  ptx::PixelPlace<dimensions> place{.channel = first_channel + tap.channel, .image = first.image};
#pragma unroll
  for (int d = 0; d < dimensions; ++d) {
    place.pixel[d] = first.at[d];
    place.offset[d] = tap.offset[d];
  }
  return place;
}

/// The first channel of a batch.
__device__ __forceinline__ int first_channel(const abi::TmaWindow& window, unsigned batch) {
  return window.first_channel + static_cast<int>(batch * window.batch_channels);
}

/// A of fprop and dgrad: rows are pixels, k the channels of a tap.
template <int dimensions, int copies>
struct WindowRows {
  const abi::TensorMap& map;
  const FirstPixel<dimensions> (&first)[copies];
  const TapPlace<dimensions>& tap;
  int first_channel;

  __device__ __forceinline__ ptx::PixelPlace<dimensions> along_k(unsigned copy, unsigned) const {
    return pixel_place(first[copy], tap, first_channel);
  }
};

/// B of wgrad: columns are channels of taps, k the pixels.
template <int dimensions>
struct WindowColumns {
  const abi::TensorMap& map;
  const abi::TmaWindow& window;
  unsigned column;
  unsigned pixel;
  unsigned batch;

  __device__ __forceinline__ ptx::PixelPlace<dimensions> along_extent(unsigned columns,
                                                                      unsigned k) const {
    return pixel_place(find_pixel<dimensions>(window, pixel + k, batch),
                       find_tap<dimensions>(window, abi::TmaFilters{}, column + columns),
                       first_channel(window, batch));
  }
};

/// B of fprop and dgrad: the filters of a tap. Channels are k in fprop and columns in dgrad. The
/// map has four dimensions: channels, taps, filters, groups.
template <int dimensions>
struct FilterColumns {
  const abi::TensorMap& map;
  const TapPlace<dimensions>& tap;
  int column;
  int group;

  __device__ __forceinline__ ptx::FarBoxPlace along_k(unsigned, unsigned columns) const {
    return {.adjacent = tap.channel,
            .row = tap.in_filter,
            .near = column + static_cast<int>(columns),
            .far = group};
  }
  __device__ __forceinline__ ptx::FarBoxPlace along_extent(unsigned columns, unsigned k) const {
    return {.adjacent = column + static_cast<int>(columns),
            .row = tap.in_filter,
            .near = tap.channel + static_cast<int>(k),
            .far = group};
  }
};

}  // namespace gemmery::device
