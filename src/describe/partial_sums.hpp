// SPDX-License-Identifier: Apache-2.0
// Split k in two passes: the products of slices, each stored as its accumulators, and then their
// sum.
#pragma once

#include <gemmery/buffer.hpp>
#include <gemmery/describe.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "describe/bound_problem.hpp"
#include "describe/steps.hpp"

namespace gemmery::describe {

// The memory of the partial sums and the steps that fill it.
struct PartialSums {
  Buffer memory;
  Partials partials;
  std::vector<Step> steps;
};

// Splits one product of a description into at most `slices` slices of k, each of whole blocks of k
// except the last. Layouts are plain.
PartialSums split_product(const GemmDescription& description, const GemmCoord& size,
                          const OperandViews& views, int slices);

// The alignment in bytes of rows of this many accumulators: 16 at most.
std::size_t row_alignment(std::int64_t columns, DType accumulator) noexcept;

// D = functor( sum of partials ), added in their order.
struct SumRequest {
  const Partials& partials;
  const EpilogueFunctor& functor;
  const OutputOp& output_op;
  std::optional<Tensor> c;
  Tensor out;
};
// `scratch` receives the memory of intermediate sums, if there are more terms than one launch adds.
std::vector<Step> sum_partials(const SumRequest& request, std::vector<Buffer>& scratch);

}  // namespace gemmery::describe
