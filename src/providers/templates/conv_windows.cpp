// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/conv_windows.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "operation/convolution.hpp"
#include "providers/templates/epilogue_parameters.hpp"

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

std::string find_phase_reduction_failure(const GemmProblem& problem) {
  if (!has_phases(*problem.convolution) || !has_reductions(problem.epilogue)) return {};
  return "epilogue: expected no reductions beside a dgrad with a stride, got some";
}

std::string find_pixel_reduction_failure(const GemmProblem& problem) {
  if (!has_phases(*problem.convolution)) return {};
  for (const abi::EpilogueTensor& output : program_tensors(problem.epilogue, false).outputs)
    if (output.reduction != abi::Reduction::none && output.varies_m)
      return "epilogue: expected reductions to a value of each channel, image or group, or of all, "
             "beside a dgrad with a stride, got a value of each pixel";
  return {};
}

std::int64_t channels_of_a(const Convolution& convolution) noexcept {
  const std::int64_t count =
      convolution.kind == ConvKind::fprop ? convolution.channels : convolution.filters;
  return count / convolution.groups;
}

bool has_phases(const Convolution& convolution) noexcept {
  return convolution.kind == ConvKind::dgrad && convolution.stride != Spatial{1, 1, 1};
}

std::int64_t pixels_along(const Convolution& convolution, std::size_t d,
                          std::int64_t first) noexcept {
  const std::int64_t left = convolution.image[d] - first;
  return left <= 0 ? 0 : (left + convolution.stride[d] - 1) / convolution.stride[d];
}

std::int64_t phases_along(const Convolution& convolution, std::size_t d) noexcept {
  return std::min(convolution.stride[d], convolution.image[d]);
}

std::int64_t count_phases(const Convolution& convolution) noexcept {
  std::int64_t count = 1;
  for (std::size_t d = 0; d < 3; ++d) count *= phases_along(convolution, d);
  return count;
}

std::int64_t rows_of_phase(const Convolution& convolution) noexcept {
  std::int64_t rows = convolution.images;
  for (std::size_t d = 0; d < 3; ++d) rows *= pixels_along(convolution, d, 0);
  return rows;
}

namespace {

// The inverse modulo `modulus` of a number that is coprime to it, by Euclid's algorithm.
std::int64_t inverse_of(std::int64_t number, std::int64_t modulus) {
  std::int64_t inverse = 0, next_inverse = 1;
  std::int64_t rest = modulus, next_rest = number % modulus;
  while (next_rest != 0) {
    const std::int64_t quotient = rest / next_rest;
    inverse = std::exchange(next_inverse, inverse - quotient * next_inverse);
    rest = std::exchange(next_rest, rest - quotient * next_rest);
  }
  return (inverse % modulus + modulus) % modulus;
}

}  // namespace

abi::PhaseDimension phase_dimension(const Convolution& convolution, std::size_t d) {
  const std::int64_t stride = convolution.stride[d];
  const std::int64_t dilation = convolution.dilation[d];
  const std::int64_t common = std::gcd(stride, dilation);
  const std::int64_t tap_step = stride / common;
  const std::int64_t most_pixels = pixels_along(convolution, d, 0);
  const std::int64_t most_taps = (convolution.filter[d] + tap_step - 1) / tap_step;
  return {.stride = divisor_of(stride),
          .common = divisor_of(common),
          .tap_step = divisor_of(tap_step),
          .inverse = static_cast<abi::UInt64>(inverse_of(dilation / common, tap_step)),
          .dilation = static_cast<int>(dilation),
          .lower = static_cast<int>(convolution.lower[d]),
          .extent = static_cast<unsigned>(convolution.image[d]),
          .filter = static_cast<unsigned>(convolution.filter[d]),
          .most = divisor_of(phases_along(convolution, d)),
          .pixels = {divisor_of(most_pixels), divisor_of(most_pixels - 1)},
          .taps = {divisor_of(most_taps), divisor_of(most_taps - 1)}};
}

namespace {

// Rows of tiles of the largest phase, in one matrix of out.
unsigned tile_rows_of_phase(const GemmProblem& problem, int tile_m) {
  const Convolution& convolution = *problem.convolution;
  std::int64_t rows = rows_of_phase(convolution);
  if (convolution.batch == ConvBatch::images && convolution.images > 0) rows /= convolution.images;
  return static_cast<unsigned>((rows + tile_m - 1) / tile_m);
}

}  // namespace

unsigned tile_rows_of_phases(const GemmProblem& problem, int tile_m) noexcept {
  return static_cast<unsigned>(count_phases(*problem.convolution) *
                               tile_rows_of_phase(problem, tile_m));
}

abi::PhaseParams phase_params(const GemmProblem& problem, int tile_m) {
  const Convolution& convolution = *problem.convolution;
  abi::PhaseParams params{};
  for (std::size_t d = 0; d < 3; ++d) params.along[d] = phase_dimension(convolution, d);
  params.tile_rows = divisor_of(tile_rows_of_phase(problem, tile_m));
  params.images =
      static_cast<unsigned>(convolution.batch == ConvBatch::images ? 1 : convolution.images);
  params.filters = static_cast<unsigned>(convolution.filters / convolution.groups);
  params.is_reversed = convolution.mode == ConvMode::convolution ? 1 : 0;
  return params;
}

}  // namespace gemmery::templates
