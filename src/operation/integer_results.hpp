// SPDX-License-Identifier: Apache-2.0
// Integer results of floating-point accumulators. They are refused unless the program says how they
// are rounded.
#pragma once

#include <gemmery/problem.hpp>

namespace gemmery::operation {

// Throws Error (invalid_argument), which names the result that would be rounded. Accumulators of
// type int32 may be scaled: their results round to nearest even and saturate, as in quantised
// GEMMs.
void check_integer_results(const GemmProblem& problem);

}  // namespace gemmery::operation
