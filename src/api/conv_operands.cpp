// SPDX-License-Identifier: Apache-2.0
#include "api/conv_operands.hpp"

#include <cstddef>
#include <vector>

#include "operation/convolution.hpp"
#include "operation/groups.hpp"

namespace gemmery::api {
Extents3 as_extents3(const operation::MatrixExtents& extents) {
  return {extents.batch, extents.rows, extents.columns};
}

namespace {

OperandMemory conv_memory(const GemmProblem& problem, bool is_a) {
  const operation::ConvMemory memory = operation::memory_of(problem, is_a);
  return {memory.type, as_extents3(memory.extents)};
}

Tensor tensor_in(const Tensor& memory, const GemmProblem& problem, bool is_a) {
  const std::int64_t first = operation::memory_of(problem, is_a).first *
                             static_cast<std::int64_t>(byte_width(memory.dtype()));
  return operation::conv_view(static_cast<const std::byte*>(memory.data()) + first, problem, is_a,
                              memory.device());
}

}  // namespace

OperandMemory memory_of_a(const GemmProblem& problem) {
  if (problem.convolution) return conv_memory(problem, true);
  return {problem.a, as_extents3(operation::product_extents(problem).a)};
}

OperandMemory memory_of_b(const GemmProblem& problem) {
  if (problem.convolution) return conv_memory(problem, false);
  return {problem.b, as_extents3(operation::product_extents(problem).b)};
}

void poison_gaps(const GemmProblem& problem, bool is_a, GuardedOperand& operand) {
  const operation::ConvMemory memory = operation::memory_of(problem, is_a);
  if (!memory.has_gaps) return;
  const Tensor view = operation::conv_view(nullptr, problem, is_a, Device::cpu());
  std::vector<bool> are_elements(static_cast<std::size_t>(memory.extents.columns));
  for (std::int64_t index = 0; index < view.element_count(); ++index) {
    std::int64_t rest = index;
    std::int64_t offset = memory.first;
    for (int d = view.rank(); d-- > 0; rest /= view.extent(d))
      offset += rest % view.extent(d) * view.stride(d);
    are_elements[static_cast<std::size_t>(offset)] = true;
  }
  for (std::size_t at = 0; at < are_elements.size(); ++at)
    if (!are_elements[at]) operand.poison_element(0, 0, static_cast<std::int64_t>(at));
}

GemmArguments bind_convolution(const ProblemLine& line, const BoundOperands& operands,
                               const GemmOptions& options) {
  const GemmProblem& problem = line.problem;
  return operation::ConvolutionBinder::bind(
      *problem.convolution, tensor_in(operands.a, problem, true),
      tensor_in(operands.b, problem, false), operands.out, problem.accumulator, options);
}

}  // namespace gemmery::api
