// SPDX-License-Identifier: Apache-2.0
// What a program adds to the accumulator before all else (accum + bias), which a kernel may do in a
// way of its own, so that the program finds it done.
#pragma once

#include <cstddef>
#include <optional>

#include "epilogue/graph.hpp"

namespace gemmery::epilogue {

// The input that is added to the accumulator in the only operation that reads either of them:
// nothing but their sum is needed then. Its number among the graph's inputs.
std::optional<std::size_t> find_added_input(const Graph& graph);

// Its number among the tensors that a program reads, in the order of its operands. -1 where there
// is none, or it is a number.
int find_addend(EpilogueId epilogue);

}  // namespace gemmery::epilogue
