// SPDX-License-Identifier: Apache-2.0
// How kernels address the elements of a convolution's operand: by a pixel and a tap of the filter.
#pragma once

#include <device/abi/fast_divisor.hpp>
#include <device/abi/host_device.hpp>

namespace gemmery::abi {

/// The convolution that a kernel computes. Elements are addressed by pixel and tap in A of fprop
/// and dgrad and in B of dgrad and wgrad. The other operands are plain matrices.
enum class ConvolutionKind : unsigned char { none, fprop, dgrad, wgrad };

/// Pixels are numbered over images, depth, height, width; taps over depth, height, width, channels.
/// The element of a pixel and a tap has, along a dimension, the coordinate
/// pixel * step + origin + tap * tap_step. Coordinates outside of [0, extent) lie in padding, where
/// elements are 0. All numbers are below 2^31 in magnitude.
struct WindowParams {
  FastDivisor pixels[3];  // by depth, height, width
  FastDivisor taps[3];    // by height, width, channels
  int step[3];
  int origin[3];
  int tap_step[3];
  unsigned extent[3];
  Int64 image_stride;  // elements
  Int64 strides[3];
  Int64 channel_stride;
};

static_assert(sizeof(WindowParams) == 6 * 12 + 12 * 4 + 5 * 8);

}  // namespace gemmery::abi
