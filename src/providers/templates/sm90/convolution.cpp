// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/sm90/convolution.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "device/abi/sm90_design.hpp"
#include "operation/conv_windows.hpp"
#include "operation/convolution.hpp"
#include "providers/templates/conv_windows.hpp"
#include "providers/templates/name_words.hpp"
#include "providers/templates/sm90/phases.hpp"

namespace gemmery::templates {

std::int64_t stage_elements(const GemmProblem& problem) noexcept {
  return abi::sm90_swizzle_bytes / static_cast<std::int64_t>(byte_width(problem.a.dtype));
}

std::int64_t count_taps(const Convolution& convolution) noexcept {
  return std::int64_t{convolution.filter[0]} * convolution.filter[1] * convolution.filter[2];
}

std::int64_t whole_stages(const GemmProblem& problem, std::int64_t channels) noexcept {
  const std::int64_t stage = stage_elements(problem);
  return (channels + stage - 1) / stage * stage;
}

namespace {

constexpr std::array<std::string_view, 3> dimension_words{"depth", "height", "width"};

bool is_wgrad(const GemmProblem& problem) { return problem.convolution->kind == ConvKind::wgrad; }

// The name of the operand that is loaded in im2col mode.
const char* window_name(const GemmProblem& problem) { return is_wgrad(problem) ? "B" : "A"; }

// The only part, with both windows; nullopt if there are no pixels.
std::optional<operation::WindowPart> part_of(const GemmProblem& problem) {
  const auto parts = operation::windows_of(*problem.convolution);
  if (parts.empty()) return std::nullopt;
  return parts.front();
}
const operation::Window& window_of(const GemmProblem& problem, const operation::WindowPart& part) {
  return is_wgrad(problem) ? part.b : part.a;
}

// The number of channels, of all groups, of the tensor in im2col mode.
std::int64_t all_channels(const Convolution& convolution) {
  return convolution.kind == ConvKind::dgrad ? convolution.filters : convolution.channels;
}

std::uint32_t rank_of(const Convolution& convolution) { return convolution.dimensions + 2U; }

// --- limits -------------------------------------------------------------------------------------

bool is_map_stride(std::int64_t bytes) {
  return bytes > 0 && bytes % 16 == 0 && bytes < std::int64_t{1} << 40;
}

std::string find_box_failure(const GemmProblem& problem, const operation::Window& window) {
  const Convolution& convolution = *problem.convolution;
  const auto limits = driver::corner_limits(rank_of(convolution));
  const std::int64_t most_offset = driver::largest_offset(rank_of(convolution));
  const auto text = [&](std::size_t d, std::string_view what, std::int64_t got) {
    return fmt::format("{}: expected {} along {}, got {}", window_name(problem), what,
                       dimension_words[d], got);
  };
  for (std::size_t d = spatial_of(convolution.dimensions); d < 3; ++d) {
    const PixelBox box = box_along(window, d);
    if (window.step[d] > driver::largest_element_stride)
      return text(d, fmt::format("a stride of at most {}", driver::largest_element_stride),
                  window.step[d]);
    if (box.reach > most_offset)
      return text(d, fmt::format("taps that reach over at most {} pixels", most_offset + 1),
                  box.reach + 1);
    const auto corner = fmt::format("{} to {} pixels", limits.least, limits.most);
    if (box.lower < limits.least || box.lower > limits.most)
      return text(d, "a first tap from its first pixel by " + corner, box.lower);
    if (box.upper < limits.least || box.upper > limits.most)
      return text(d, "a first tap from its last pixel by " + corner, box.upper);
  }
  return {};
}

// Strides of dimensions with more than one element.
std::string find_stride_failure(const GemmProblem& problem, bool is_a,
                                const std::array<std::int64_t, 4>& strides) {
  const auto width = static_cast<std::int64_t>(byte_width(problem.a.dtype));
  for (const std::int64_t stride : strides)
    if (stride != 0 && !is_map_stride(stride * width))
      return fmt::format("{}: expected strides of 16 to 2^40 bytes in steps of 16, got {}",
                         is_a ? "A" : "B", stride * width);
  const auto tensors = operation::tensors_of(problem.convolution->kind);
  const auto extents = operation::extents_of(*problem.convolution, is_a ? tensors.a : tensors.b);
  for (std::size_t d = 0; d < strides.size(); ++d)
    if (extents[d] > 1 && strides[d] == 0 && std::ranges::find(extents, 0) == extents.end())
      return fmt::format("{}: expected elements of its own for each index, got a stride of 0",
                         is_a ? "A" : "B");
  return {};
}

// For the operand in im2col mode: TMA cannot copy fewer bytes of a pixel.
std::string find_pixel_failure(const GemmProblem& problem) {
  const std::int64_t channels = all_channels(*problem.convolution);
  const std::int64_t bytes = channels * static_cast<std::int64_t>(byte_width(problem.a.dtype));
  if (bytes % widest_access == 0) return {};
  return fmt::format(
      "{}: expected channels of a pixel in units of {} bytes, which TMA copies, got {} channels of "
      "{} bytes (sm80 copies any number)",
      window_name(problem), widest_access, channels, bytes);
}

std::string find_alignment_failure(const GemmProblem& problem) {
  for (const bool is_a : {true, false}) {
    const int alignment = (is_a ? problem.a : problem.b).alignment;
    if (alignment % widest_access != 0)
      return fmt::format("{}: expected alignment in bytes of {}, got {}", is_a ? "A" : "B",
                         widest_access, alignment);
  }
  return {};
}

// Elements from tap to tap of a filter, if its taps are equally spaced.
std::optional<std::int64_t> tap_distance(const Convolution& convolution) {
  std::optional<std::int64_t> distance, next;
  for (std::size_t d = 3; d > 0; --d) {
    const std::int64_t extent = convolution.filter[d - 1];
    if (extent == 1) continue;
    const std::int64_t stride = convolution.b_strides[d];
    if (next && stride != *next) return std::nullopt;
    if (!distance) distance = stride;
    next = stride * extent;
  }
  return distance.value_or(0);
}

// A copy must not load channels of the next group.
std::string find_channel_failure(const GemmProblem& problem) {
  const Convolution& convolution = *problem.convolution;
  const std::int64_t stage = stage_elements(problem);
  if (is_wgrad(problem) || convolution.groups == 1) return {};
  const std::int64_t channels = all_channels(convolution) / convolution.groups;
  if (channels % stage == 0) return {};
  return fmt::format("A: expected channels of a group in multiples of {}, got {}", stage, channels);
}

// With padded taps, only TMA can store the channels of a tap.
std::string find_tap_failure(const GemmProblem& problem) {
  const std::int64_t channels = problem.convolution->channels / problem.convolution->groups;
  const std::int64_t bytes = channels * static_cast<std::int64_t>(byte_width(problem.out.dtype));
  const auto beside = fmt::format("for a wgrad whose taps have {} channels, no multiple of {}",
                                  channels, stage_elements(problem));
  if (bytes % widest_access != 0 || problem.out.alignment % widest_access != 0)
    return fmt::format(
        "out: expected channels in units of {} bytes {}, got {} bytes at an "
        "alignment of {}",
        widest_access, beside, bytes, problem.out.alignment);
  if (problem.c) return fmt::format("C: expected none {}, got a tensor", beside);
  if (problem.epilogue == default_epilogue) return {};
  for (const EpilogueOperandRule& rule : rules_of(problem.epilogue).operands)
    if (!rule.is_number && (rule.is_output || rule.varies_n))
      return fmt::format(
          "epilogue operand {}: expected an input that varies along filters alone, {}", rule.name,
          beside);
  return {};
}

std::string find_kind_failure(const GemmProblem& problem) {
  const Convolution& convolution = *problem.convolution;
  switch (convolution.kind) {
    case ConvKind::wgrad:
      if (!are_pixels_of_a_matrix(problem))
        return "A: expected pixels at one distance, got other strides";
      if (has_tap_columns(problem))
        if (std::string failure = find_tap_failure(problem); !failure.empty()) return failure;
      if (problem.m == 0 || problem.k == 0) return {};  // nothing is copied
      return find_misfit("A", view_of({.layout = LayoutRule::column}, matrix_of_outputs(problem),
                                      problem.m, problem.k, problem.l));
    case ConvKind::dgrad:
      if (has_phases(convolution)) {
        std::string failure = find_sm90_phase_failure(problem);
        if (!failure.empty()) return failure;
      }
      [[fallthrough]];
    case ConvKind::fprop:
      if (!tap_distance(convolution)) return "B: expected taps at one distance, got other strides";
  }
  return {};
}

}  // namespace

bool are_filters_adjacent(const Convolution& convolution) noexcept {
  const auto distance = tap_distance(convolution);
  const std::int64_t taps = count_taps(convolution);
  return taps == 1 || (distance && convolution.b_strides[0] == *distance * taps);
}

std::string find_sm90_conv_failure(const GemmProblem& problem) {
  const Convolution& convolution = *problem.convolution;
  std::string failure = find_pixel_failure(problem);
  if (failure.empty()) failure = find_kind_failure(problem);
  if (failure.empty()) failure = find_alignment_failure(problem);
  if (failure.empty()) failure = find_stride_failure(problem, true, convolution.a_strides);
  if (failure.empty()) failure = find_stride_failure(problem, false, convolution.b_strides);
  if (failure.empty()) failure = find_channel_failure(problem);
  if (!failure.empty()) return failure;
  constexpr std::int64_t most_depth = std::numeric_limits<std::int32_t>::max() - 65536;
  if (sm90_depth(problem) > most_depth ||
      all_channels(convolution) > abi::TmaWindow::beyond_channels)
    return fmt::format(
        "k: expected taps and channels, in whole stages, of at most {}, and channels of at most "
        "{}, "
        "got {} and {}",
        most_depth, abi::TmaWindow::beyond_channels, sm90_depth(problem),
        all_channels(convolution));
  if (has_phases(convolution)) return find_box_failure(problem, window_of_phases(convolution));
  const auto part = part_of(problem);
  return part ? find_box_failure(problem, window_of(problem, *part)) : std::string();
}

std::array<OperandRule, 2> sm90_conv_rules(const GemmProblem& problem) noexcept {
  const auto rule = [&](const MatrixType& matrix, LayoutRule layout) {
    return OperandRule{.dtype = matrix.dtype, .layout = layout, .alignment = widest_access};
  };
  const ConvKind kind = problem.convolution->kind;
  return {rule(problem.a, kind == ConvKind::wgrad ? LayoutRule::column : LayoutRule::row),
          rule(problem.b, kind == ConvKind::fprop ? LayoutRule::column : LayoutRule::row)};
}

Sm90Form form_of(const GemmProblem& problem) noexcept {
  const Convolution& convolution = *problem.convolution;
  Sm90Form first = Sm90Form::fprop_1d;
  if (convolution.kind == ConvKind::dgrad)
    first = has_phases(convolution) ? Sm90Form::strided_dgrad_1d : Sm90Form::dgrad_1d;
  if (convolution.kind == ConvKind::wgrad)
    first = has_tap_columns(problem) ? Sm90Form::padded_wgrad_1d : Sm90Form::wgrad_1d;
  return static_cast<Sm90Form>(static_cast<int>(first) + convolution.dimensions - 1);
}

// A copy loads an atom of B's columns, a store has a staging tile of out's: both lie within a tap.
std::int64_t tap_columns(const GemmProblem& problem) noexcept {
  const Convolution& convolution = *problem.convolution;
  const std::int64_t channels = convolution.channels / convolution.groups;
  if ((convolution.groups == 1 && count_taps(convolution) == 1) ||
      channels % stage_elements(problem) == 0)
    return channels;
  const std::int64_t unit =
      std::max(stage_elements(problem),
               abi::sm90_swizzle_bytes / static_cast<std::int64_t>(byte_width(problem.out.dtype)));
  return (channels + unit - 1) / unit * unit;
}

bool has_tap_columns(const GemmProblem& problem) noexcept {
  return problem.convolution && is_wgrad(problem) &&
         tap_columns(problem) != problem.convolution->channels / problem.convolution->groups;
}

std::int64_t sm90_rows(const GemmProblem& problem) noexcept {
  return problem.convolution && has_phases(*problem.convolution)
             ? rows_of_phase(*problem.convolution)
             : problem.m;
}
std::int64_t sm90_columns(const GemmProblem& problem) noexcept {
  return has_tap_columns(problem) ? tap_columns(problem) * count_taps(*problem.convolution)
                                  : problem.n;
}
std::int64_t sm90_batches(const GemmProblem& problem) noexcept {
  return problem.convolution && has_phases(*problem.convolution)
             ? count_phases(*problem.convolution) * problem.convolution->groups
             : problem.l;
}

std::int64_t sm90_depth(const GemmProblem& problem) noexcept {
  if (!problem.convolution || is_wgrad(problem)) return problem.k;
  const std::int64_t channels = channels_of_a(*problem.convolution);
  return channels == 0 ? 0 : problem.k / channels * whole_stages(problem, channels);
}

MatrixType matrix_of_outputs(const GemmProblem& problem) noexcept {
  MatrixType matrix = problem.a;
  matrix.column_stride = pixel_stride_of_a(problem);
  return matrix;
}

// --- maps ---------------------------------------------------------------------------------------

namespace {

constexpr std::uint64_t least_stride = 16;

std::uint64_t stride_bytes(const GemmProblem& problem, std::int64_t stride) {
  return stride == 0 ? least_stride
                     : static_cast<std::uint64_t>(stride) * byte_width(problem.a.dtype);
}

driver::Im2colTensorMap pixels_map(const void* data, const GemmProblem& problem, TmaBox box) {
  driver::Im2colTensorMap map{.address = data,
                              .dtype = problem.a.dtype,
                              .rank = rank_of(*problem.convolution),
                              .channels = static_cast<std::uint32_t>(box.adjacent),
                              .pixels = static_cast<std::uint32_t>(box.other),
                              .swizzle = driver::cuda::TensorMapSwizzle::bytes128};
  map.extents.fill(1);
  map.byte_strides.fill(least_stride);
  return map;
}

driver::TiledTensorMap taps_map(const void* data, const GemmProblem& problem, TmaBox box) {
  return {.address = data,
          .dtype = problem.a.dtype,
          .rank = 4,
          .extents = {1, 1, 1, 1},
          .byte_strides = {least_stride, least_stride, least_stride},
          .box = {static_cast<std::uint32_t>(box.adjacent), 1,
                  static_cast<std::uint32_t>(box.other), 1},
          .swizzle = driver::cuda::TensorMapSwizzle::bytes128};
}

}  // namespace

driver::Im2colTensorMap map_of_window(const void* data, const GemmProblem& problem,
                                      const operation::Window& window, TmaBox box) {
  const Convolution& convolution = *problem.convolution;
  driver::Im2colTensorMap map = pixels_map(data, problem, box);
  map.extents[0] = static_cast<std::uint64_t>(all_channels(convolution));
  for (std::size_t at = 1; at <= convolution.dimensions; ++at) {
    const std::size_t d = spatial_of(at);
    const PixelBox pixels = box_along(window, d);
    map.extents[at] = static_cast<std::uint64_t>(window.extent[d]);
    map.byte_strides[at - 1] = stride_bytes(problem, window.strides[d + 1]);
    map.lower_corner[at - 1] = static_cast<int>(pixels.lower);
    map.upper_corner[at - 1] = static_cast<int>(pixels.upper);
    map.element_strides[at] = static_cast<std::uint32_t>(window.step[d]);
  }
  const std::size_t last = map.rank - 1;
  map.extents[last] = static_cast<std::uint64_t>(convolution.images);
  map.byte_strides[last - 1] = stride_bytes(problem, window.strides[0]);
  return map;
}

driver::Im2colTensorMap image_map(const void* data, const GemmProblem& problem, TmaBox box) {
  const operation::WindowPart part = *part_of(problem);
  return map_of_window(data, problem, window_of(problem, part), box);
}

driver::TiledTensorMap filter_map(const void* data, const GemmProblem& problem, TmaBox box) {
  const Convolution& convolution = *problem.convolution;
  const auto extents = operation::extents_of(convolution, operation::ConvTensor::filter);
  const std::int64_t filters = convolution.filters / convolution.groups;
  driver::TiledTensorMap map = taps_map(data, problem, box);
  const auto size = [](std::int64_t extent) { return static_cast<std::uint64_t>(extent); };
  map.extents = {size(extents[4]), size(count_taps(convolution)), size(filters),
                 size(convolution.groups)};
  map.byte_strides = {stride_bytes(problem, *tap_distance(convolution)),
                      stride_bytes(problem, convolution.b_strides[0]),
                      stride_bytes(problem, convolution.b_strides[0] * filters)};
  if (!has_phases(convolution) || convolution.groups == 1) return map;
  // The taps of all filters, one after the other: a group begins at its first filter's.
  const std::int64_t taps = count_taps(convolution);
  map.extents[1] = size(taps * (filters * (convolution.groups - 1) + 1));
  map.extents[3] = 1;
  map.byte_strides[0] = stride_bytes(problem, convolution.b_strides[0] / taps);
  return map;
}

driver::TiledTensorMap tap_map(const void* data, const GemmProblem& problem, TmaBox box) {
  const Convolution& convolution = *problem.convolution;
  const std::int64_t channels = convolution.channels / convolution.groups;
  const auto width = static_cast<std::int64_t>(byte_width(problem.out.dtype));
  const auto unsigned_of = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  // An extent of 1 has no stride.
  const auto bytes = [&](std::int64_t elements) {
    return unsigned_of(std::max<std::int64_t>(elements * width, widest_access));
  };
  driver::TiledTensorMap map = taps_map(data, problem, box);
  map.dtype = problem.out.dtype;
  map.swizzle = swizzle_of(box.adjacent * static_cast<int>(width));
  map.extents = {unsigned_of(channels), unsigned_of(count_taps(convolution)),
                 unsigned_of(problem.m), unsigned_of(problem.l)};
  map.byte_strides = {bytes(channels), bytes(problem.out.row_stride),
                      bytes(problem.out.batch_stride)};
  return map;
}

driver::Im2colTensorMap empty_image_map(const void* data, const GemmProblem& problem, TmaBox box) {
  return pixels_map(data, problem, box);
}
driver::TiledTensorMap empty_filter_map(const void* data, const GemmProblem& problem, TmaBox box) {
  return taps_map(data, problem, box);
}

// --- parameters ---------------------------------------------------------------------------------

namespace {

// A window without reads: all channels are beyond the map, and all pixels are its only one.
abi::TmaWindow empty_window() {
  abi::TmaWindow params{};
  for (std::size_t d = 0; d < 3; ++d) params.pixels[d] = params.taps[d] = divisor_of(1);
  params.taps[2] = divisor_of(std::int64_t{1} << 30);
  params.tap_count = 1;
  params.first_channel = abi::TmaWindow::beyond_channels;
  return params;
}

}  // namespace

abi::TmaWindow tma_window(const GemmProblem& problem, bool reads) {
  const auto part = part_of(problem);
  if (!reads || !part) {
    abi::TmaWindow params = empty_window();
    if (is_wgrad(problem)) params.taps[2] = divisor_of(tap_columns(problem));  // stores divide, too
    return params;
  }
  const Convolution& convolution = *problem.convolution;
  const operation::Window& window = window_of(problem, *part);
  abi::TmaWindow params{};
  for (std::size_t d = 0; d < 3; ++d) {
    const PixelBox box = box_along(window, d);
    params.pixels[d] = divisor_of(window.pixels[d + 1]);
    params.step[d] = static_cast<int>(window.step[d]);
    params.lower[d] = static_cast<int>(box.lower);
    params.first_offset[d] = static_cast<int>(box.first_offset);
    params.offset_step[d] = static_cast<int>(window.tap_step[d]);
  }
  const std::int64_t channels = window.taps[3];
  params.taps[0] = divisor_of(window.taps[1]);
  params.taps[1] = divisor_of(window.taps[2]);
  params.taps[2] =
      divisor_of(is_wgrad(problem) ? tap_columns(problem) : whole_stages(problem, channels));
  params.tap_count = static_cast<unsigned>(window.taps[0] * window.taps[1] * window.taps[2]);
  params.batch_channels = convolution.groups > 1 ? static_cast<unsigned>(channels) : 0;
  params.batch_images = convolution.batch == ConvBatch::images ? 1 : 0;
  return params;
}

abi::TmaFilters filters_of(const Convolution& convolution, const operation::Window& taps) {
  abi::TmaFilters params{};
  std::int64_t scale = 1;
  for (std::size_t d = 3; d-- > 0; scale *= convolution.filter[d]) {
    params.first += static_cast<int>(taps.origin[d] * scale);
    params.step[d] = static_cast<int>(taps.tap_step[d] * scale);
  }
  params.batch_groups = convolution.groups > 1 ? 1 : 0;
  return params;
}

abi::TmaFilters tma_filters(const GemmProblem& problem) {
  const auto part = part_of(problem);
  if (is_wgrad(problem) || !part) return {};
  return filters_of(*problem.convolution, part->b);
}

}  // namespace gemmery::templates
