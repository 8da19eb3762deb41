// SPDX-License-Identifier: Apache-2.0
// Split k in two passes: products of slices, each left in memory as its accumulators, and their
// sum.
#pragma once

#include <gemmery/buffer.hpp>
#include <gemmery/describe.hpp>

#include <vector>

#include "describe/bound_problem.hpp"
#include "describe/steps.hpp"

namespace gemmery::describe {

// Memory of the sums and what fills it.
struct PartialSums {
  Buffer memory;
  Partials partials;
  std::vector<Step> steps;
};

// One product of a description, in at most `slices` slices of k, each but the last of whole blocks
// of k. Layouts are plain.
PartialSums split_product(const GemmDescription& description, const GemmCoord& size,
                          const ProblemViews& views, int slices);

// D = functor( sum of partials ), in their order.
struct SumRequest {
  const Partials& partials;
  const EpilogueFunctor& functor;
  const OutputOp& output_op;
  std::optional<Tensor> c;
  Tensor out;
};
// `scratch` gets the memory of sums on the way, where there are more than one launch adds.
std::vector<Step> sum_partials(const SumRequest& request, std::vector<Buffer>& scratch);

}  // namespace gemmery::describe
