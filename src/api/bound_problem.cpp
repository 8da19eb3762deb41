// SPDX-License-Identifier: Apache-2.0
#include "api/bound_problem.hpp"

#include <array>

#include <gemmery/buffer.hpp>
#include <gemmery/grouped.hpp>

#include "api/companion_operands.hpp"
#include "api/conv_operands.hpp"
#include "api/epilogue_operands.hpp"
#include "operation/groups.hpp"

namespace gemmery::api {
namespace {

// The view as arguments take it: tensors that groups share have rank 2.
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

// The matrices of a batch by pointers.
class ListedMatrices {
 public:
  // `stream`: the stream whose work has written the pointers.
  ListedMatrices(const Tensor& batch, Stream stream)
      : batch_(batch), data_(static_cast<std::size_t>(batch.extent(0))) {
    if (!batch.has_pointers()) return;  // no elements
    copy(data_.data(), Device::cpu(), batch.data(), batch.device(), data_.size() * sizeof(void*),
         stream);
    synchronize(stream);
  }

  // The upper left part of a matrix.
  Tensor part(std::size_t index, std::int64_t rows, std::int64_t columns) const {
    const std::array shape{rows, columns};
    const std::array strides{batch_.stride(1), batch_.stride(2)};
    return Tensor(data_[index], batch_.dtype(), shape, strides, batch_.device());
  }

 private:
  Tensor batch_;
  std::vector<void*> data_;
};

GemmArguments bind_list(const ProblemLine& line, const BoundOperands& operands,
                        const BoundGroups& groups) {
  const ListedMatrices a(operands.a, groups.stream);
  const ListedMatrices b(operands.b, groups.stream);
  const ListedMatrices out(operands.out, groups.stream);
  std::optional<ListedMatrices> c;
  if (operands.c) c.emplace(*operands.c, groups.stream);
  const auto& list = groups.drawn->list();
  std::vector<GroupedProblem> problems;
  for (std::size_t index = 0; index < list.size(); ++index) {
    const auto& [m, n, k] = list[index];
    GemmOptions options{.alpha = line.alpha, .beta = line.beta, .math = line.problem.math};
    if (c) options.c = c->part(index, m, n);
    problems.push_back({a.part(index, m, k), b.part(index, k, n), out.part(index, m, n), options});
  }
  return GroupedGemmArguments(problems, line.problem.accumulator).as_gemm();
}

}  // namespace

GemmArguments bind_problem(const ProblemLine& line, const BoundOperands& operands,
                           const BoundGroups& groups) {
  const GemmProblem& problem = line.problem;
  if (problem.groups && problem.groups->sizes == GroupSizes::list)
    return bind_list(line, operands, groups);
  GemmOptions options{
      .c = operands.c, .alpha = line.alpha, .beta = line.beta, .math = problem.math};
  options.epilogue = bind_epilogue(line, operands.epilogue);
  if (problem.convolution) return bind_convolution(line, operands, options);
  const auto scaled = [&](const Tensor& a, const Tensor& b) {
    return bind_companions(line, a, b, operands.companions);
  };
  if (!problem.groups) {
    const auto [a, b] = scaled(operands.a, operands.b);
    return GemmArguments(a, b, operands.out, problem.accumulator, options);
  }
  const bool are_shared = problem.groups->share_tensors();
  const Ragged ragged = problem.groups->ragged;
  const auto [a, b] = scaled(as_given(operands.a, are_shared && ragged != Ragged::n),
                             as_given(operands.b, are_shared && ragged != Ragged::m));
  return GroupedGemmArguments(a, b, as_given(operands.out, are_shared && ragged != Ragged::k),
                              problem.accumulator,
                              offsets_of(problem, groups, operands.out.device()), options)
      .as_gemm();
}

}  // namespace gemmery::api
