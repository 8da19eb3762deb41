// SPDX-License-Identifier: Apache-2.0
// Finds values of a program that are certainly integral: an integer tensor stores them without
// rounding.
#pragma once

#include <vector>

#include "epilogue/graph.hpp"

namespace gemmery::epilogue {

// Facts about the program's inputs.
struct WholeInputs {
  bool accumulator = false;
  std::vector<bool> inputs;  // in the graph's order
};

// True for every node whose value is an integer, an infinity or NaN, whatever the inputs.
std::vector<bool> find_whole_values(const Graph& graph, const WholeInputs& read);

}  // namespace gemmery::epilogue
