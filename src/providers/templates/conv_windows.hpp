// SPDX-License-Identifier: Apache-2.0
// What families need of a convolution: the windows of its operands as kernels take them, and which
// operands are matrices in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <gemmery/problem.hpp>

#include "device/abi/conv_phases.hpp"
#include "device/abi/window_params.hpp"
#include "operation/window.hpp"

namespace gemmery::templates {

// Divides by an extent, by 1 where it is 0.
abi::FastDivisor divisor_of(std::int64_t extent);

abi::WindowParams window_params(const operation::Window& window);

// True if the taps of a filter and its channels are adjacent: w is a matrix (K, RSC).
bool are_filters_matrix(const Convolution& convolution) noexcept;

// Elements from one pixel of A to the next, of all images, if there is one such distance.
std::int64_t pixel_stride_of_a(const GemmProblem& problem) noexcept;
bool are_pixels_of_a_matrix(const GemmProblem& problem) noexcept;

// What kernels that find elements by pixel and tap do not do: w of fprop with gaps between taps and
// channels, dy of wgrad with pixels at several distances, reductions beside a dgrad with a stride.
// Returns the failed constraint in words, or nothing.
std::string find_window_failure(const GemmProblem& problem);

// Channels of one tap of A, which are adjacent.
std::int64_t channels_of_a(const Convolution& convolution) noexcept;

// A dgrad with a stride, whose pixels of dx meet other taps from phase to phase.
bool has_phases(const Convolution& convolution) noexcept;

// Phases along a dimension, and pixels of the one that begins with pixel `first`.
std::int64_t phases_along(const Convolution& convolution, std::size_t d) noexcept;
std::int64_t pixels_along(const Convolution& convolution, std::size_t d,
                          std::int64_t first) noexcept;

// With those that no tap reaches.
std::int64_t count_phases(const Convolution& convolution) noexcept;
// Of the largest phase.
std::int64_t rows_of_phase(const Convolution& convolution) noexcept;

// How the phases along a dimension are found.
abi::PhaseDimension phase_dimension(const Convolution& convolution, std::size_t d);

// Rows of tiles of all phases in one matrix of out, as many for each, and the parameters of kernels
// for tiles of this many rows.
unsigned tile_rows_of_phases(const GemmProblem& problem, int tile_m) noexcept;
abi::PhaseParams phase_params(const GemmProblem& problem, int tile_m);

}  // namespace gemmery::templates
