// SPDX-License-Identifier: Apache-2.0
// Convolutions for kernels that run only convolutions.
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>

#include "tests/conformance/random_source.hpp"

namespace gemmery::conformance {

// A small convolution that fits the kernel's rules, with a C if the kernel has one.
GemmProblem random_convolution(const Kernel& kernel, Choices& choices);

}  // namespace gemmery::conformance
