// SPDX-License-Identifier: Apache-2.0
// A problem's line with memory for everything that it names, as arguments.
#pragma once

#include <optional>
#include <vector>

#include <gemmery/arguments.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/stream.hpp>
#include <gemmery/tensor.hpp>

#include "api/drawn_groups.hpp"

namespace gemmery::api {

// Views of rank 3 of operands as large as `operation::product_extents` says; those of the epilogue
// in the order of `epilogue_tensors`.
struct BoundOperands {
  Tensor a, b, out;
  std::optional<Tensor> c;
  std::vector<Tensor> epilogue;
};

// The sizes of a grouped problem, and where they are.
struct BoundGroups {
  const DrawnGroups* drawn = nullptr;
  GroupIndices sizes;
  // The arrays of indices, where there are some.
  const void* gather = nullptr;
  const void* scatter = nullptr;
  Stream stream = Stream::cpu();  // work on it has written what is above, and pointers of a list
};

// Throws Error as arguments do.
GemmArguments bind_problem(const ProblemLine& line, const BoundOperands& operands,
                           const BoundGroups& groups = {});

}  // namespace gemmery::api
