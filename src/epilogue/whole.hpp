// SPDX-License-Identifier: Apache-2.0
// Which values of a program are whole numbers for certain: an integer tensor stores those without
// rounding them.
#pragma once

#include <vector>

#include "epilogue/graph.hpp"

namespace gemmery::epilogue {

// What is known of the values that a program reads.
struct WholeInputs {
  bool accumulator = false;
  std::vector<bool> inputs;  // by the graph's order
};

// True for every node whose value is a whole number, an infinity or NaN, whatever is read.
std::vector<bool> find_whole_values(const Graph& graph, const WholeInputs& read);

}  // namespace gemmery::epilogue
