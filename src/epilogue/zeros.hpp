// SPDX-License-Identifier: Apache-2.0
// What a program makes of zeros, where that is certain to the last bit. Where a kernel sees to it
// that sums beyond an edge of out are 0, it need not leave them out of a reduction that takes
// nothing of them.
#pragma once

#include <optional>
#include <vector>

#include "epilogue/graph.hpp"

namespace gemmery::epilogue {

// The value of every node where the accumulator and those inputs of the graph are 0 that are `true`
// in `are_zero`; nothing where it depends on others, on how a function is rounded, or on a cast.
// Either zero is 0. In float32.
std::vector<std::optional<double>> evaluate_zeros(const Graph& graph,
                                                  const std::vector<bool>& are_zero);

// Whether every reduction of a program stays as it is where it takes what becomes of a sum of 0, an
// addend (addend.hpp) being 0, too. True without any reduction.
bool reduces_zeros_to_nothing(EpilogueId epilogue);

}  // namespace gemmery::epilogue
