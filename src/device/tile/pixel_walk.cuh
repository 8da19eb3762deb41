// SPDX-License-Identifier: Apache-2.0
// Walks the pixels of a convolution without divisions.
#pragma once

#include <device/tile/window.cuh>

namespace gemmery::device {

/// Visits pixels in order, a constant number apart. The coordinates of the next pixel are computed
/// from the current ones by additions that carry from width to height, depth and images.
template <int dimensions>
class PixelWalk {
  static constexpr int outer = 3 - dimensions;  // the dimension whose carries go to images

 public:
  /// From this pixel on, in steps of `step` pixels. `shift` is added to all coordinates.
  __device__ __forceinline__ PixelWalk(const abi::WindowParams& window, unsigned pixel, int step,
                                       const WindowPart& shift, int element_bytes) {
    const WindowPart first = window_pixel<dimensions>(window, pixel);
    abi::Int64 offset = first.offset;
    abi::Int64 stride_above = window.image_stride;  // of one step of the dimension above
    unsigned rest = static_cast<unsigned>(step);
    bytes_of_step_ = 0;
#pragma unroll
    for (int d = 2; d >= outer; --d) {
      const unsigned above = window.pixels[d].divide(rest);
      step_[d] = static_cast<int>(rest - above * window.pixels[d].divisor) * window.step[d];
      rest = above;
      at[d] = first.at[d] + shift.at[d];
      wrap_[d] = static_cast<int>(window.pixels[d].divisor) * window.step[d];
      end_[d] = window.origin[d] + shift.at[d] + wrap_[d];
      if (d > outer) stride_above = window.step[d - 1] * window.strides[d - 1];
      if (d == outer) stride_above = window.image_stride;
      bytes_of_carry_[d] = (stride_above - wrap_[d] * window.strides[d]) * element_bytes;
      bytes_of_step_ += step_[d] * window.strides[d] * element_bytes;
      offset += at[d] * window.strides[d];
    }
    bytes_of_step_ += rest * window.image_stride * element_bytes;
    bytes = offset * element_bytes;
  }

  __device__ __forceinline__ void advance(const abi::WindowParams& window) {
    bytes += bytes_of_step_;
#pragma unroll
    for (int d = 2; d >= outer; --d) {
      at[d] += step_[d];
      if (at[d] < end_[d]) continue;
      at[d] -= wrap_[d];
      bytes += bytes_of_carry_[d];
      if (d > outer) at[d - 1] += window.step[d - 1];
    }
  }

  int at[3];
  abi::Int64 bytes;  // from the beginning of the tensor

 private:
  int step_[3];
  int wrap_[3];
  int end_[3];
  abi::Int64 bytes_of_step_;
  abi::Int64 bytes_of_carry_[3];
};

}  // namespace gemmery::device
