// SPDX-License-Identifier: Apache-2.0
#include "api/bound_problem.hpp"

#include <array>

#include <gemmery/error.hpp>
#include <gemmery/grouped.hpp>

#include "api/conv_operands.hpp"
#include "api/epilogue_operands.hpp"
#include "operation/groups.hpp"

namespace gemmery::api {
namespace {

// Groups share tensors of rank 2.
Tensor as_given(const Tensor& view, bool is_shared) {
  if (!is_shared) return view;
  const std::array shape{view.extent(1), view.extent(2)};
  const std::array strides{view.stride(1), view.stride(2)};
  return Tensor(view.data(), view.dtype(), shape, strides, view.device());
}

std::optional<GroupIndices> indices_at(const void* data, const IndexedElements& indexed,
                                       std::int64_t count, Device device) {
  if (!indexed.are_used()) return std::nullopt;
  if (indexed.bits == 64)
    return GroupIndices(static_cast<const std::int64_t*>(data), count, device);
  return GroupIndices(static_cast<const std::int32_t*>(data), count, device);
}

GroupOffsets offsets_of(const GemmProblem& problem, const BoundGroups& bound, Device device) {
  const Groups& groups = *problem.groups;
  const std::int64_t elements = operation::ragged_extent(problem);
  return {.sizes = bound.sizes,
          .form = groups.sizes,
          .ragged = groups.ragged,
          .outside = groups.outside,
          .alignment = groups.alignment,
          .expected = groups.expected,
          .read_now = groups.are_on_host,
          .gather = indices_at(bound.gather, groups.gather, elements, device),
          .gather_divide = groups.gather.divide,
          .scatter = indices_at(bound.scatter, groups.scatter, elements, device)};
}

// The upper left part of one matrix of a batch by pointers.
Tensor listed_part(const Tensor& view, std::size_t index, std::int64_t rows, std::int64_t columns) {
  const std::array shape{rows, columns};
  const std::array strides{view.stride(1), view.stride(2)};
  return Tensor(static_cast<void* const*>(view.data())[index], view.dtype(), shape, strides,
                view.device());
}

GemmArguments bind_list(const ProblemLine& line, const BoundOperands& operands,
                        const DrawnGroups& drawn) {
  if (!operands.out.device().is_cpu()) {
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = "list",
                 .expected = "operands in host memory",
                 .got = "operands on " + to_string(operands.out.device())});
  }
  std::vector<GroupedProblem> problems;
  for (std::size_t index = 0; index < drawn.list().size(); ++index) {
    const auto& [m, n, k] = drawn.list()[index];
    GemmOptions options{.alpha = line.alpha, .beta = line.beta, .math = line.problem.math};
    if (operands.c) options.c = listed_part(*operands.c, index, m, n);
    problems.push_back({listed_part(operands.a, index, m, k), listed_part(operands.b, index, k, n),
                        listed_part(operands.out, index, m, n), options});
  }
  return GroupedGemmArguments(problems, line.problem.accumulator).as_gemm();
}

}  // namespace

GemmArguments bind_problem(const ProblemLine& line, const BoundOperands& operands,
                           const BoundGroups& groups) {
  const GemmProblem& problem = line.problem;
  if (problem.groups && problem.groups->sizes == GroupSizes::list)
    return bind_list(line, operands, *groups.drawn);
  GemmOptions options{
      .c = operands.c, .alpha = line.alpha, .beta = line.beta, .math = problem.math};
  options.epilogue = bind_epilogue(line, operands.epilogue);
  if (problem.convolution) return bind_convolution(line, operands, options);
  if (!problem.groups)
    return GemmArguments(operands.a, operands.b, operands.out, problem.accumulator, options);
  const bool are_shared = problem.groups->share_tensors();
  const Ragged ragged = problem.groups->ragged;
  return GroupedGemmArguments(as_given(operands.a, are_shared && ragged != Ragged::n),
                              as_given(operands.b, are_shared && ragged != Ragged::m),
                              as_given(operands.out, are_shared && ragged != Ragged::k),
                              problem.accumulator,
                              offsets_of(problem, groups, operands.out.device()), options)
      .as_gemm();
}

}  // namespace gemmery::api
