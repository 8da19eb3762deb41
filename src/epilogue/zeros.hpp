// SPDX-License-Identifier: Apache-2.0
// The results of a program for zeros, if they are certain to the last bit. A kernel whose
// accumulators outside of out are 0 need not exclude them from a reduction that zeros do not
// change.
#pragma once

#include <optional>
#include <vector>

#include "epilogue/graph.hpp"

namespace gemmery::epilogue {

// The value of every node, in float32, if the accumulator and the inputs marked in `are_zero` are
// 0; nothing if it depends on other inputs, on how a function is rounded, or on a cast. Either zero
// counts as 0.
std::vector<std::optional<double>> evaluate_zeros(const Graph& graph,
                                                  const std::vector<bool>& are_zero);

// True if every reduction of a program is unchanged by the result for an accumulator of 0 and an
// addend (addend.hpp) of 0. True for a program without reductions.
bool reduces_zeros_to_nothing(EpilogueId epilogue);

}  // namespace gemmery::epilogue
