// SPDX-License-Identifier: Apache-2.0
// The cost of a program's arithmetic on a GPU: machine instructions, counted and not timed.
#pragma once

#include "epilogue/graph.hpp"

namespace gemmery::epilogue {

// The instructions of one operation on float, as math.cuh computes it.
double count_instructions(Op op) noexcept;

// Those of the operation's instructions that use the special function unit (powers of 2,
// reciprocals, logarithms, roots): a warp issues one every eight clocks.
int count_slow_results(Op op) noexcept;

// The instructions of the program's operations and casts, per element of out. Reading and writing
// operands depends on the kernel and is not included.
double count_instructions(const Graph& graph) noexcept;
int count_slow_results(const Graph& graph) noexcept;

}  // namespace gemmery::epilogue
