// SPDX-License-Identifier: Apache-2.0
// The strips of pixels of a depthwise convolution's threads, and the phases of a dgrad with a
// stride.
#pragma once

#include <device/abi/conv_phases.hpp>
#include <device/abi/depthwise_design.hpp>
#include <device/abi/depthwise_params.hpp>

namespace gemmery::device {

/// Adjacent pixels along width, given by the first one.
struct DepthwiseStrip {
  unsigned image;
  int at[3];   // depth, height, width
  int pixels;  // number of pixels; 0 for a strip after the last one
};

template <const abi::DepthwiseDesign& design>
__device__ __forceinline__ DepthwiseStrip find_strip(const abi::DepthwiseParams& params,
                                                     const abi::DepthwiseWindow& window,
                                                     unsigned index) {
  const unsigned row = params.strips[2].divide(index);
  const unsigned slab = params.strips[1].divide(row);
  const unsigned image = params.strips[0].divide(slab);
  const unsigned depth = slab - image * params.strips[0].divisor;
  const unsigned height = row - slab * params.strips[1].divisor;
  const unsigned width = (index - row * params.strips[2].divisor) * design.pixels;
  const bool exists = image < params.images && depth < window.pixels[0] &&
                      height < window.pixels[1] && width < window.pixels[2];
  const unsigned left = exists ? window.pixels[2] - width : 0U;
  return {.image = image,
          .at = {static_cast<int>(depth), static_cast<int>(height), static_cast<int>(width)},
          .pixels = static_cast<int>(min(left, static_cast<unsigned>(design.pixels)))};
}

/// The row of out's matrix for a strip's first pixel.
__device__ __forceinline__ unsigned row_of_out(const abi::DepthwiseParams& params,
                                               const abi::DepthwiseWindow& window,
                                               const DepthwiseStrip& strip) {
  unsigned row = strip.image;
#pragma unroll
  for (int d = 0; d < 3; ++d)
    row = row * params.out_image[d] + window.first_pixel[d] +
          static_cast<unsigned>(strip.at[d]) * params.pixel_step[d];
  return row;
}

/// Called by one thread: the window of a phase. Phases are numbered along width first.
__device__ __forceinline__ void find_window(const abi::DepthwiseParams& params, unsigned phase,
                                            abi::DepthwiseWindow& window) {
  window = params.window;
#pragma unroll 1
  for (int d = 2; d >= 0; --d) {
    const abi::PhaseDimension& along = params.phases[d];
    const unsigned above = along.most.divide(phase);
    const abi::Phase found = abi::find_phase(along, phase - above * along.most.divisor);
    phase = above;
    window.first_pixel[d] = found.first;
    window.pixels[d] = found.pixels;
    window.origin[d] = found.origin;
    window.taps[d] = params.is_multiplied != 0 ? found.taps : 0;
    // If the filter's taps are reversed, the first tap and the walk begin at its end.
    window.first_tap[d] += window.tap_walk[d] * static_cast<int>(found.tap);
    window.tap_walk[d] *= static_cast<int>(along.tap_step.divisor);
  }
}

}  // namespace gemmery::device
