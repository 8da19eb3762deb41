// SPDX-License-Identifier: Apache-2.0
// Convolutions as sm90 kernels take them: the limits of copies in im2col mode, and the maps and
// parameters of a launch (device/copy/conv_operand.cuh).
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

// A window along a dimension as a map has it: pixels step from `lower` to the last one plus `upper`
// behind the tensor, and offsets reach from 0 to `reach`.
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

// Elements of k in one stage, which are also the channels of a copy; and channels of whole stages.
std::int64_t stage_elements(const GemmProblem& problem) noexcept;
std::int64_t whole_stages(const GemmProblem& problem, std::int64_t channels) noexcept;

// The first limit that a convolution exceeds, in words; empty if kernels take it.
std::string find_sm90_conv_failure(const GemmProblem& problem);

// The rules of A and B, of which a convolution has one each.
std::array<OperandRule, 2> sm90_conv_rules(const GemmProblem& problem) noexcept;

Sm90Form form_of(const GemmProblem& problem) noexcept;

// Of a wgrad, columns from tap to tap: its channels, or more if they end within a unit of what
// copies and stores take.
std::int64_t tap_columns(const GemmProblem& problem) noexcept;
bool has_tap_columns(const GemmProblem& problem) noexcept;

// Extents of the product as a kernel multiplies it; those of the problem where it is no
// convolution.
std::int64_t sm90_rows(const GemmProblem& problem) noexcept;
std::int64_t sm90_columns(const GemmProblem& problem) noexcept;
std::int64_t sm90_batches(const GemmProblem& problem) noexcept;
// dw where taps have more columns than channels: channels, taps, filters, groups.
driver::TiledTensorMap tap_map(const void* data, const GemmProblem& problem, TmaBox box);

// Elements of k as a kernel counts them: channels of each tap fill whole stages. Of other problems
// their k.
std::int64_t sm90_depth(const GemmProblem& problem) noexcept;

// A of wgrad, dy with a column for each pixel.
MatrixType matrix_of_outputs(const GemmProblem& problem) noexcept;

// The tensor in im2col mode (not of a dgrad with a stride), and the filters of fprop and dgrad.
driver::Im2colTensorMap map_of_window(const void* data, const GemmProblem& problem,
                                      const operation::Window& window, TmaBox box);
driver::Im2colTensorMap image_map(const void* data, const GemmProblem& problem, TmaBox box);
driver::TiledTensorMap filter_map(const void* data, const GemmProblem& problem, TmaBox box);
// Maps of any memory, from which nothing is read: all channels lie beyond.
driver::Im2colTensorMap empty_image_map(const void* data, const GemmProblem& problem, TmaBox box);
driver::TiledTensorMap empty_filter_map(const void* data, const GemmProblem& problem, TmaBox box);

// `reads`: false if nothing is read.
abi::TmaWindow tma_window(const GemmProblem& problem, bool reads);
abi::TmaFilters tma_filters(const GemmProblem& problem);
abi::TmaFilters filters_of(const Convolution& convolution, const operation::Window& taps);

}  // namespace gemmery::templates
