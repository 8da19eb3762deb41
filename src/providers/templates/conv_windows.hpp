// SPDX-License-Identifier: Apache-2.0
// Convolutions in families: the windows of the operands in the form that kernels take, and the
// operands that are plain matrices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <gemmery/problem.hpp>

#include "device/abi/conv_phases.hpp"
#include "device/abi/window_params.hpp"
#include "operation/window.hpp"

namespace gemmery::templates {

// The divisor by an extent; by 1 if the extent is 0.
abi::FastDivisor divisor_of(std::int64_t extent);

abi::WindowParams window_params(const operation::Window& window);

// True if the taps of a filter and its channels are adjacent: w is a matrix (K, RSC).
bool are_filters_matrix(const Convolution& convolution) noexcept;

// Elements from one pixel of A to the next, if all pixels of all images are equally spaced.
std::int64_t pixel_stride_of_a(const GemmProblem& problem) noexcept;
bool are_pixels_of_a_matrix(const GemmProblem& problem) noexcept;

// The failed constraint of kernels that address elements by pixel and tap, in words; empty if there
// is none. They support no gaps between taps and channels of w in fprop, and no unequally spaced
// pixels of dy in wgrad.
std::string find_window_failure(const GemmProblem& problem);

// Likewise of kernels that support no reductions in a dgrad with a stride, and of kernels that
// support only those that combine all pixels of a matrix.
std::string find_phase_reduction_failure(const GemmProblem& problem);
std::string find_pixel_reduction_failure(const GemmProblem& problem);

// The number of channels of one tap of A; they are adjacent.
std::int64_t channels_of_a(const Convolution& convolution) noexcept;

// True for a dgrad with a stride, which has phases of pixels that use different taps.
bool has_phases(const Convolution& convolution) noexcept;

// The number of phases along a dimension, and of pixels in the phase that begins with `first`.
std::int64_t phases_along(const Convolution& convolution, std::size_t d) noexcept;
std::int64_t pixels_along(const Convolution& convolution, std::size_t d,
                          std::int64_t first) noexcept;

// The number of phases, including those that no tap reaches.
std::int64_t count_phases(const Convolution& convolution) noexcept;
// The number of pixels of the largest phase.
std::int64_t rows_of_phase(const Convolution& convolution) noexcept;

// The phases along a dimension, in the form that kernels take.
abi::PhaseDimension phase_dimension(const Convolution& convolution, std::size_t d);

// For tiles of `tile_m` rows: the rows of tiles of all phases in one matrix of out, as many for
// each phase, and the kernel parameters.
unsigned tile_rows_of_phases(const GemmProblem& problem, int tile_m) noexcept;
abi::PhaseParams phase_params(const GemmProblem& problem, int tile_m);

}  // namespace gemmery::templates
