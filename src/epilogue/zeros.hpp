// SPDX-License-Identifier: Apache-2.0
// What a program makes of zeros, where that is certain to the last bit. Beyond an edge of out sums
// and vectors are zeros, and a kernel need not leave such columns out of a reduction that takes
// nothing of them.
#pragma once

#include <optional>
#include <vector>

#include "epilogue/graph.hpp"

namespace gemmery::epilogue {

// The value of every node where the accumulator and those inputs of the graph are 0 that are `true`
// in `are_zero`; nothing where it depends on others, or on how a function is rounded. Either zero
// is 0.
std::vector<std::optional<double>> evaluate_zeros(const Graph& graph,
                                                  const std::vector<bool>& are_zero);

// Whether every reduction of a program stays as it is where it takes the result of a sum of 0 in a
// column beyond out: of tensors that vary along the columns alone, the elements there are 0, too.
// `is_turned`: of the transpose of out. True without any reduction.
bool reduces_zeros_to_nothing(EpilogueId epilogue, bool is_turned);

}  // namespace gemmery::epilogue
