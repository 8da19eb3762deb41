// SPDX-License-Identifier: Apache-2.0
// The input that a program adds to the accumulator first (accum + bias). A kernel may do this in
// its own way, before the rest of the program runs.
#pragma once

#include <cstddef>
#include <optional>

#include "epilogue/graph.hpp"

namespace gemmery::epilogue {

// The input that is added to the accumulator by the only operation that reads either of them, so
// that only their sum is needed. Its number among the graph's inputs.
std::optional<std::size_t> find_added_input(const Graph& graph);

// The number of that input among the tensors that a program reads, in the order of its operands. -1
// if there is no such input, or it is a number.
int find_addend(EpilogueId epilogue);

}  // namespace gemmery::epilogue
