// SPDX-License-Identifier: Apache-2.0
// Convolutions for kernels that run nothing else.
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>

#include "tests/conformance/random_source.hpp"

namespace gemmery::conformance {

// A small one that the kernel's rules fit, with its C.
GemmProblem random_convolution(const Kernel& kernel, Choices& choices);

}  // namespace gemmery::conformance
