// SPDX-License-Identifier: Apache-2.0
// A problem line and the memory of its operands as arguments.
#pragma once

#include <optional>
#include <vector>

#include <gemmery/arguments.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/stream.hpp>
#include <gemmery/tensor.hpp>

#include "api/drawn_groups.hpp"

namespace gemmery::api {

// Views of rank 3 of operands with the extents of `operation::product_extents`; those of the
// epilogue in the order of `epilogue_tensors`, scales and zero points in that of
// `companion_tensors`.
struct BoundOperands {
  Tensor a, b, out;
  std::optional<Tensor> c;
  std::vector<Tensor> epilogue;
  std::vector<Tensor> companions = {};
};

// The sizes of a grouped problem and their memory.
struct BoundGroups {
  const DrawnGroups* drawn = nullptr;
  GroupIndices sizes;
  // The arrays of indices; null if there are none.
  const void* gather = nullptr;
  const void* scatter = nullptr;
  Stream stream = Stream::cpu();  // its work writes the arrays above and a list's pointers
};

// Throws Error as arguments do.
GemmArguments bind_problem(const ProblemLine& line, const BoundOperands& operands,
                           const BoundGroups& groups = {});

}  // namespace gemmery::api
