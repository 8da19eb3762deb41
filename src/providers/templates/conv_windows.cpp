// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/conv_windows.hpp"

#include <algorithm>

#include "operation/convolution.hpp"

namespace gemmery::templates {

abi::FastDivisor divisor_of(std::int64_t extent) {
  return abi::make_fast_divisor(static_cast<unsigned>(std::max<std::int64_t>(extent, 1)));
}

abi::WindowParams window_params(const operation::Window& window) {
  abi::WindowParams params{};
  params.image_stride = window.strides[0];
  params.channel_stride = window.strides[4];
  for (std::size_t d = 0; d < 3; ++d) {
    params.pixels[d] = divisor_of(window.pixels[d + 1]);
    params.taps[d] = divisor_of(window.taps[d + 1]);
    params.step[d] = static_cast<int>(window.step[d]);
    params.origin[d] = static_cast<int>(window.origin[d]);
    params.tap_step[d] = static_cast<int>(window.tap_step[d]);
    params.extent[d] = static_cast<unsigned>(window.extent[d]);
    params.strides[d] = window.strides[d + 1];
  }
  return params;
}

bool are_filters_matrix(const Convolution& convolution) noexcept {
  const auto extents = operation::extents_of(convolution, operation::ConvTensor::filter);
  auto expected = operation::packed_strides(extents, extents[4]);
  expected[0] = convolution.b_strides[0];
  return convolution.b_strides == expected;
}

std::int64_t pixel_stride_of_a(const GemmProblem& problem) noexcept {
  return operation::memory_of(problem, true).type.row_stride;
}

bool are_pixels_of_a_matrix(const GemmProblem& problem) noexcept {
  return !operation::memory_of(problem, true).has_gaps;
}

std::string find_window_failure(const GemmProblem& problem) {
  const ConvKind kind = problem.convolution->kind;
  if (kind == ConvKind::fprop && !are_filters_matrix(*problem.convolution))
    return "B: expected filters whose taps and channels are adjacent, got other strides";
  if (kind == ConvKind::wgrad && !are_pixels_of_a_matrix(problem))
    return "A: expected pixels at one distance, got other strides";
  return {};
}

std::int64_t channels_of_a(const Convolution& convolution) noexcept {
  const std::int64_t count =
      convolution.kind == ConvKind::fprop ? convolution.channels : convolution.filters;
  return count / convolution.groups;
}

}  // namespace gemmery::templates
