// SPDX-License-Identifier: Apache-2.0
// Arithmetic of convolutions: extents, strides, alignments.
#include "operation/convolution.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gemmery/error.hpp>

#include "operation/names.hpp"
#include "operation/shapes.hpp"

namespace gemmery {
namespace {

constexpr std::array<std::string_view, 3> kind_names{"fprop", "dgrad", "wgrad"};
constexpr std::array<std::string_view, 2> mode_names{"cross_correlation", "convolution"};
constexpr std::array<std::string_view, 2> batch_names{"groups", "images"};

}  // namespace

std::string_view name(ConvKind kind) noexcept { return kind_names[static_cast<std::size_t>(kind)]; }
std::optional<ConvKind> parse_conv_kind(std::string_view word) noexcept {
  return operation::find_name<ConvKind>(kind_names, word);
}
std::string_view name(ConvMode mode) noexcept { return mode_names[static_cast<std::size_t>(mode)]; }
std::optional<ConvMode> parse_conv_mode(std::string_view word) noexcept {
  return operation::find_name<ConvMode>(mode_names, word);
}
std::string_view name(ConvBatch batch) noexcept {
  return batch_names[static_cast<std::size_t>(batch)];
}
std::optional<ConvBatch> parse_conv_batch(std::string_view word) noexcept {
  return operation::find_name<ConvBatch>(batch_names, word);
}

}  // namespace gemmery

namespace gemmery::operation {
namespace {

[[noreturn]] void refuse_convolution(const Convolution& convolution, std::string operand,
                                     std::string expected, std::string got, std::string hint = {},
                                     ErrorKind kind = ErrorKind::invalid_argument) {
  throw Error({.kind = kind,
               .operand = fmt::format("conv{}d_{}: {}", convolution.dimensions,
                                      name(convolution.kind), operand),
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

std::int64_t product_of(const Spatial& extents) noexcept {
  return std::int64_t{extents[0]} * extents[1] * extents[2];
}

constexpr std::array<std::string_view, 3> dimension_names{"depth", "height", "width"};

// The reach of a filter: from its first tap to its last, both included.
std::int64_t reach_of(const Convolution& convolution, std::size_t d) noexcept {
  return std::int64_t{convolution.dilation[d]} * (convolution.filter[d] - 1) + 1;
}
std::int64_t padded_extent(const Convolution& convolution, std::size_t d) noexcept {
  return std::int64_t{convolution.image[d]} + convolution.lower[d] + convolution.upper[d];
}

void check_numbers(const Convolution& convolution, std::size_t d) {
  const std::string along = fmt::format(" along {}", dimension_names[d]);
  const auto require = [&](const char* what, std::int64_t value, std::int64_t least) {
    if (value < least)
      refuse_convolution(convolution, what + along, fmt::format("a number from {}", least),
                         std::to_string(value));
  };
  require("stride", convolution.stride[d], 1);
  require("dilation", convolution.dilation[d], 1);
  require("lower padding", convolution.lower[d], 0);
  require("upper padding", convolution.upper[d], 0);
  require("filter", convolution.filter[d], 1);
}

// True if the output is smaller than the formula's: that of a transposed convolution with output
// padding.
bool is_transposed_output(const Convolution& convolution, std::size_t d) noexcept {
  if (convolution.kind != ConvKind::dgrad || convolution.output[d] < 1) return false;
  const std::int64_t left = padded_extent(convolution, d) - reach_of(convolution, d) -
                            (std::int64_t{convolution.output[d]} - 1) * convolution.stride[d];
  return left >= 0 && left < std::max(convolution.stride[d], convolution.dilation[d]);
}

void check_output(const Convolution& convolution, std::size_t d) {
  const std::int64_t expected = output_extent(convolution, d);
  const std::string along = fmt::format(" along {}", dimension_names[d]);
  if (expected < 1)
    refuse_convolution(
        convolution, "filter" + along,
        fmt::format("at most the padded image, {}", padded_extent(convolution, d)),
        fmt::format("{} taps that reach over {}", convolution.filter[d], reach_of(convolution, d)),
        "pad the image, or use a smaller filter or dilation");
  if (convolution.output[d] == expected || is_transposed_output(convolution, d)) return;
  refuse_convolution(
      convolution, std::string(symbol(convolution.kind, ConvTensor::output)) + along,
      fmt::format("{}, from an image of {}, padding {} and {}, filter {}, dilation {}, stride {}",
                  expected, convolution.image[d], convolution.lower[d], convolution.upper[d],
                  convolution.filter[d], convolution.dilation[d], convolution.stride[d]),
      std::to_string(convolution.output[d]));
}

void check_groups(const Convolution& convolution) {
  if (convolution.groups < 1)
    refuse_convolution(convolution, "groups", "a number from 1",
                       std::to_string(convolution.groups));
  const auto require = [&](const char* what, std::int64_t count) {
    if (count % convolution.groups != 0)
      refuse_convolution(convolution, "groups", fmt::format("a divisor of the {} {}", count, what),
                         std::to_string(convolution.groups));
  };
  require("channels", convolution.channels);
  require("filters", convolution.filters);
  if (convolution.groups > 1 && convolution.batch == ConvBatch::images)
    refuse_convolution(convolution, "batch", "groups, where there are several", "images", {},
                       ErrorKind::unsupported);
  if (convolution.kind == ConvKind::wgrad && convolution.batch == ConvBatch::images)
    refuse_convolution(convolution, "batch", "groups: dw is one tensor of all images", "images", {},
                       ErrorKind::unsupported);
}

void check_size(const Convolution& convolution) {
  const double images = static_cast<double>(convolution.images);
  // In double, since three extents overflow 64 bits.
  const auto product = [](const Spatial& extents) {
    return static_cast<double>(extents[0]) * extents[1] * extents[2];
  };
  const double pixels = images * std::max(product(convolution.image), product(convolution.output));
  const double weights = product(convolution.filter) *
                         static_cast<double>(std::max(convolution.channels, convolution.filters));
  if (pixels > largest_extent)
    refuse_convolution(convolution, "pixels", "at most 2147483647 of all images",
                       fmt::format("{:.0f}", pixels), "split the images", ErrorKind::unsupported);
  if (weights > largest_extent)
    refuse_convolution(convolution, "filter", "at most 2147483647 taps and channels of one filter",
                       fmt::format("{:.0f}", weights), "split the channels",
                       ErrorKind::unsupported);
}

// --- the GEMM -----------------------------------------------------------------------------------

// The stride from group to group, or from image to image.
std::int64_t batch_stride_of(const Convolution& convolution, ConvTensor tensor,
                             const std::array<std::int64_t, 4>& strides) noexcept {
  if (convolution.batch == ConvBatch::images)
    return convolution.images > 1 && tensor != ConvTensor::filter ? strides[0] : 0;
  if (convolution.groups <= 1) return 0;
  switch (tensor) {
    case ConvTensor::image:
      return convolution.channels / convolution.groups;
    case ConvTensor::output:
      return convolution.filters / convolution.groups;
    case ConvTensor::filter:
      return convolution.filters / convolution.groups * strides[0];
  }
  return 0;
}

// Describes an operand as one tap reads it: pixels (or filters) by channels.
void describe_operand(const Convolution& convolution, ConvTensor tensor,
                      const std::array<std::int64_t, 4>& strides, bool are_channels_rows,
                      MatrixType& matrix) noexcept {
  matrix.batch_stride = batch_stride_of(convolution, tensor, strides);
  const std::int64_t step = tensor == ConvTensor::filter ? strides[0] : strides[3];
  matrix.row_stride = are_channels_rows ? 1 : step;
  matrix.column_stride = are_channels_rows ? step : 1;
}

}  // namespace

ConvTensors tensors_of(ConvKind kind) noexcept {
  switch (kind) {
    case ConvKind::fprop:
      return {ConvTensor::image, ConvTensor::filter, ConvTensor::output};
    case ConvKind::dgrad:
      return {ConvTensor::output, ConvTensor::filter, ConvTensor::image};
    case ConvKind::wgrad:
      break;
  }
  return {ConvTensor::output, ConvTensor::image, ConvTensor::filter};
}

std::string_view symbol(ConvKind kind, ConvTensor tensor) noexcept {
  switch (tensor) {
    case ConvTensor::image:
      return kind == ConvKind::dgrad ? "dx" : "x";
    case ConvTensor::filter:
      return kind == ConvKind::wgrad ? "dw" : "w";
    case ConvTensor::output:
      break;
  }
  return kind == ConvKind::fprop ? "y" : "dy";
}

ConvExtents extents_of(const Convolution& convolution, ConvTensor tensor) noexcept {
  const auto make = [](std::int64_t outer, const Spatial& spatial, std::int64_t inner) {
    return ConvExtents{outer, spatial[0], spatial[1], spatial[2], inner};
  };
  switch (tensor) {
    case ConvTensor::image:
      return make(convolution.images, convolution.image, convolution.channels);
    case ConvTensor::filter:
      return make(convolution.filters, convolution.filter,
                  convolution.channels / std::max(convolution.groups, 1));
    case ConvTensor::output:
      break;
  }
  return make(convolution.images, convolution.output, convolution.filters);
}

std::int64_t output_extent(const Convolution& convolution, std::size_t d) noexcept {
  const std::int64_t left = padded_extent(convolution, d) - reach_of(convolution, d);
  return left < 0 ? 0 : left / convolution.stride[d] + 1;
}

void check_convolution(const Convolution& convolution) {
  for (std::size_t d = spatial_count - convolution.dimensions; d < spatial_count; ++d) {
    check_numbers(convolution, d);
    check_output(convolution, d);
  }
  check_groups(convolution);
  check_size(convolution);
}

void describe_product(GemmProblem& problem) noexcept {
  const Convolution& convolution = *problem.convolution;
  const ConvTensors tensors = tensors_of(convolution.kind);
  const std::int64_t groups = convolution.groups;
  const bool is_by_image = convolution.batch == ConvBatch::images;
  const std::int64_t taps = product_of(convolution.filter);
  const std::int64_t images = is_by_image ? 1 : convolution.images;
  const std::int64_t channels = convolution.channels / groups;
  const std::int64_t filters = convolution.filters / groups;
  problem.l = is_by_image ? convolution.images : groups;
  switch (convolution.kind) {
    case ConvKind::fprop:
      problem.m = images * product_of(convolution.output);
      problem.n = filters;
      problem.k = taps * channels;
      break;
    case ConvKind::dgrad:
      problem.m = images * product_of(convolution.image);
      problem.n = channels;
      problem.k = taps * filters;
      break;
    case ConvKind::wgrad:
      problem.m = filters;
      problem.n = taps * channels;
      problem.k = images * product_of(convolution.output);
      break;
  }
  describe_operand(convolution, tensors.a, convolution.a_strides,
                   convolution.kind == ConvKind::wgrad, problem.a);
  describe_operand(convolution, tensors.b, convolution.b_strides,
                   convolution.kind == ConvKind::fprop, problem.b);
}

std::array<std::int64_t, 4> packed_strides(const ConvExtents& extents,
                                           std::int64_t pixel_stride) noexcept {
  std::array<std::int64_t, 4> strides{};
  strides[3] = pixel_stride;
  for (std::size_t d = 3; d-- > 0;) strides[d] = strides[d + 1] * extents[d + 1];
  return normalize_strides(strides, extents);
}

std::array<std::int64_t, 4> normalize_strides(const std::array<std::int64_t, 4>& strides,
                                              const ConvExtents& extents) noexcept {
  std::array<std::int64_t, 4> kept{};
  if (std::ranges::find(extents, 0) != extents.end()) return kept;
  for (std::size_t d = 0; d < kept.size(); ++d) kept[d] = extents[d] > 1 ? strides[d] : 0;
  return kept;
}

std::uint8_t conv_alignment(std::uintptr_t address, const GemmProblem& problem,
                            bool is_a) noexcept {
  const Convolution& convolution = *problem.convolution;
  const auto& strides = is_a ? convolution.a_strides : convolution.b_strides;
  const MatrixType& matrix = is_a ? problem.a : problem.b;
  std::int64_t steps = batch_stride_of(
      convolution, is_a ? tensors_of(convolution.kind).a : tensors_of(convolution.kind).b, strides);
  for (const std::int64_t stride : strides) steps |= stride;
  return alignment_of(address, {.dtype = matrix.dtype, .batch_stride = steps, .column_stride = 1});
}

std::uint8_t conv_alignment(const Tensor& view, const GemmProblem& problem, bool is_a) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(view.data());
  return conv_alignment(view.element_count() == 0 ? 0 : address, problem, is_a);
}

void describe_convolution(const Tensor& a, const Tensor& b, GemmProblem& problem) noexcept {
  problem.a.dtype = a.dtype();
  problem.b.dtype = b.dtype();
  describe_product(problem);
  problem.a.alignment = conv_alignment(a, problem, true);
  problem.b.alignment = conv_alignment(b, problem, false);
}

Tensor conv_view(const void* data, const GemmProblem& problem, bool is_a, Device device) {
  const Convolution& convolution = *problem.convolution;
  const ConvTensors tensors = tensors_of(convolution.kind);
  const ConvExtents extents = extents_of(convolution, is_a ? tensors.a : tensors.b);
  const auto& own = is_a ? convolution.a_strides : convolution.b_strides;
  const ConvExtents strides{own[0], own[1], own[2], own[3], 1};
  return Tensor(data, is_a ? problem.a.dtype : problem.b.dtype, extents, strides, device);
}

ConvMemory memory_of(const GemmProblem& problem, bool is_a) noexcept {
  const Convolution& convolution = *problem.convolution;
  const ConvTensors tensors = tensors_of(convolution.kind);
  const ConvExtents extents = extents_of(convolution, is_a ? tensors.a : tensors.b);
  const auto& strides = is_a ? convolution.a_strides : convolution.b_strides;
  MatrixType type = is_a ? problem.a : problem.b;
  std::int64_t pixels = 1;
  std::int64_t pixel_stride = extents[4];
  bool is_even = true;
  std::optional<std::int64_t> expected;  // none before the innermost dimension
  for (std::size_t d = 4; d-- > 0;) {
    if (extents[d] == 1) continue;
    if (!expected) pixel_stride = strides[d];
    is_even = is_even && (!expected || strides[d] == *expected);
    pixels *= extents[d];
    expected = strides[d] * extents[d];
  }
  type.batch_stride = 0;
  type.column_stride = 1;
  if (std::ranges::find(extents, 0) != extents.end()) return {type, {1, 0, 0}, false};
  if (is_even && pixel_stride >= extents[4]) {
    type.row_stride = pixels > 1 ? pixel_stride : 0;
    return {type, {1, pixels, extents[4]}, false};
  }
  std::int64_t above = extents[4];
  std::int64_t below = 0;
  for (std::size_t d = 0; d < 4; ++d) {
    const std::int64_t reach = (extents[d] - 1) * strides[d];
    (reach < 0 ? below : above) += reach < 0 ? -reach : reach;
  }
  type.row_stride = 0;
  return {type, {1, 1, below + above}, true, below};
}

double conv_bytes(const GemmProblem& problem, bool is_a) noexcept {
  const ConvTensors tensors = tensors_of(problem.convolution->kind);
  double count = 1;
  for (const std::int64_t extent : extents_of(*problem.convolution, is_a ? tensors.a : tensors.b))
    count *= static_cast<double>(extent);
  return count * bit_width((is_a ? problem.a : problem.b).dtype) / 8;
}

}  // namespace gemmery::operation
