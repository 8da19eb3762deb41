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

// Whether every reduction of a program stays as it is where it takes what becomes of a sum of 0 in
// a column beyond out: there elements of tensors that vary along the columns alone are 0, too. In a
// row beyond out they are not: it holds there for a program that reads no tensor but an addend that
// is in the sums already. `is_turned`: of the transpose of out. True without any reduction.
bool reduces_zeros_to_nothing(EpilogueId epilogue, bool is_turned);

}  // namespace gemmery::epilogue
