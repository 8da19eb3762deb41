// SPDX-License-Identifier: Apache-2.0
// Convolutions in sm90 kernels: the limits of copies in im2col mode, and the maps and parameters of
// a launch (device/copy/conv_operand.cuh).
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/problem.hpp>

#include <array>
#include <cstdint>
#include <string>

#include "device/abi/sm90_conv_params.hpp"
#include "driver/tensor_map.hpp"
#include "operation/window.hpp"
#include "providers/templates/sm90/design.hpp"
#include "providers/templates/tma_view.hpp"

namespace gemmery::templates {

// A window along a dimension in the form of a map: pixels from `lower` to the tensor's last one
// plus `upper`, and offsets from 0 to `reach`.
struct PixelBox {
  std::int64_t lower;
  std::int64_t upper;
  std::int64_t first_offset;
  std::int64_t reach;
};
inline PixelBox box_along(const operation::Window& window, std::size_t d) noexcept {
  const std::int64_t last_tap = (window.taps[d] - 1) * window.tap_step[d];
  const std::int64_t lower = window.origin[d] + (last_tap < 0 ? last_tap : 0);
  const std::int64_t last = lower + (window.pixels[d + 1] - 1) * window.step[d];
  return {.lower = lower,
          .upper = last + 1 - window.extent[d],
          .first_offset = window.origin[d] - lower,
          .reach = last_tap < 0 ? -last_tap : last_tap};
}

// The spatial dimension of a map's dimension 1, 2, 3: width first.
constexpr std::size_t spatial_of(std::size_t map_dimension) noexcept { return 3 - map_dimension; }

// Elements of k in one stage, which are also the channels of a copy; and channels rounded up to
// whole stages.
std::int64_t stage_elements(const GemmProblem& problem) noexcept;
// Taps of a filter.
std::int64_t count_taps(const Convolution& convolution) noexcept;
// True if each filter's taps follow those of the filter before, at one distance.
bool are_filters_adjacent(const Convolution& convolution) noexcept;
std::int64_t whole_stages(const GemmProblem& problem, std::int64_t channels) noexcept;

// The first limit that a convolution exceeds, in words; empty if kernels take it.
std::string find_sm90_conv_failure(const GemmProblem& problem);

// The rules of A and B, of which a convolution has one each.
std::array<OperandRule, 2> sm90_conv_rules(const GemmProblem& problem) noexcept;

Sm90Form form_of(const GemmProblem& problem) noexcept;

// In a wgrad, columns from tap to tap: the channels, rounded up to a whole unit of copies and
// stores.
std::int64_t tap_columns(const GemmProblem& problem) noexcept;
bool has_tap_columns(const GemmProblem& problem) noexcept;

// Extents of the product that a kernel multiplies; those of the problem if it is not a
// convolution.
std::int64_t sm90_rows(const GemmProblem& problem) noexcept;
std::int64_t sm90_columns(const GemmProblem& problem) noexcept;
std::int64_t sm90_batches(const GemmProblem& problem) noexcept;
// The map of dw if taps have more columns than channels: channels, taps, filters, groups.
driver::TiledTensorMap tap_map(const void* data, const GemmProblem& problem, TmaBox box);

// Elements of k as a kernel counts them: the channels of each tap fill whole stages. For other
// problems it is k.
std::int64_t sm90_depth(const GemmProblem& problem) noexcept;

// A of wgrad: dy as a matrix with a column for each pixel.
MatrixType matrix_of_outputs(const GemmProblem& problem) noexcept;

// The maps of the tensor in im2col mode (not for a dgrad with a stride), and of the filters of
// fprop and dgrad.
driver::Im2colTensorMap map_of_window(const void* data, const GemmProblem& problem,
                                      const operation::Window& window, TmaBox box);
driver::Im2colTensorMap image_map(const void* data, const GemmProblem& problem, TmaBox box);
driver::TiledTensorMap filter_map(const void* data, const GemmProblem& problem, TmaBox box);
// Maps of any memory from which nothing is read: all channels are out of bounds.
driver::Im2colTensorMap empty_image_map(const void* data, const GemmProblem& problem, TmaBox box);
driver::TiledTensorMap empty_filter_map(const void* data, const GemmProblem& problem, TmaBox box);

// `reads`: false if nothing is read.
abi::TmaWindow tma_window(const GemmProblem& problem, bool reads);
abi::TmaFilters tma_filters(const GemmProblem& problem);
abi::TmaFilters filters_of(const Convolution& convolution, const operation::Window& taps);

}  // namespace gemmery::templates
