// SPDX-License-Identifier: Apache-2.0
// What a program's arithmetic costs a GPU: instructions of machine code, counted, not timed.
#pragma once

#include "epilogue/graph.hpp"

namespace gemmery::epilogue {

// Of one operation on float, as math.cuh computes it.
double count_instructions(Op op) noexcept;

// Those of it that the slow unit takes (powers of 2, reciprocals, logarithms, roots): a warp begins
// one in eight clocks.
int count_slow_results(Op op) noexcept;

// Of the program's operations and casts, for one element of out. What reading and writing its
// operands takes depends on the kernel and is not in it.
double count_instructions(const Graph& graph) noexcept;
int count_slow_results(const Graph& graph) noexcept;

}  // namespace gemmery::epilogue
