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
#include "providers/templates/tma_view.hpp"

namespace gemmery::templates {

// The first limit that a convolution exceeds, in words; empty if kernels take it.
std::string find_sm90_conv_failure(const GemmProblem& problem);

// The rules of A and B, of which a convolution has one each.
std::array<OperandRule, 2> sm90_conv_rules(const GemmProblem& problem) noexcept;

// Elements of k as a kernel counts them: channels of each tap fill whole stages. Of other problems
// their k.
std::int64_t sm90_depth(const GemmProblem& problem) noexcept;

// A of wgrad, dy with a column for each pixel.
MatrixType matrix_of_outputs(const GemmProblem& problem) noexcept;

// The tensor in im2col mode, and the filters of fprop and dgrad.
driver::Im2colTensorMap image_map(const void* data, const GemmProblem& problem, TmaBox box);
driver::TiledTensorMap filter_map(const void* data, const GemmProblem& problem, TmaBox box);
// Maps of any memory, from which nothing is read: all channels lie beyond.
driver::Im2colTensorMap empty_image_map(const void* data, const GemmProblem& problem, TmaBox box);
driver::TiledTensorMap empty_filter_map(const void* data, const GemmProblem& problem, TmaBox box);

// `reads`: false if nothing is read.
abi::TmaWindow tma_window(const GemmProblem& problem, bool reads);
abi::TmaFilters tma_filters(const GemmProblem& problem);

}  // namespace gemmery::templates
