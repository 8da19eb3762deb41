// SPDX-License-Identifier: Apache-2.0
// Integer results of floating-point accumulators: the program says how they are rounded, or they
// are refused. Nothing is rounded to integers silently.
#pragma once

#include <gemmery/problem.hpp>

namespace gemmery::operation {

// Throws Error (invalid_argument) naming the result that would be rounded. Accumulators of type
// int32 may be scaled: their results round to nearest even and saturate, as quantised GEMMs do.
void check_integer_results(const GemmProblem& problem);

}  // namespace gemmery::operation
