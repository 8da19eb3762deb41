// SPDX-License-Identifier: Apache-2.0
#include "api/companion_operands.hpp"

#include <array>

#include "operation/companions.hpp"

namespace gemmery::api {
namespace {

void append(const GemmProblem& problem, bool is_a, std::vector<CompanionTensor>& tensors) {
  const OperandCompanions& companions = is_a ? problem.a_companions : problem.b_companions;
  if (companions.empty()) return;
  const operation::OperandExtents extents = operation::operand_extents(problem, is_a);
  const auto add = [&](std::string name, const CompanionType& type, bool is_zero_point) {
    const operation::MatrixExtents own =
        operation::companion_extents(type.block, type.layout, extents);
    tensors.push_back(
        {std::move(name), type, {own.batch, own.rows, own.columns}, is_a, is_zero_point});
  };
  for (std::size_t i = 0; i < companions.scales.size(); ++i)
    add(operation::scale_name(is_a, i), companions.scales[i], false);
  if (companions.zero_point)
    add(std::string(operation::zero_point_name(is_a)), *companions.zero_point, true);
}

// As arguments take it: those of B have blocks of k before blocks of columns.
Companion as_given(const CompanionTensor& companion, const Tensor& view) {
  const CompanionType& type = companion.type;
  if (type.layout == ScaleLayout::swizzled_128x4) {
    // A matrix that the whole batch shares.
    const std::array shape{type.values.batch_stride == 0 ? std::int64_t{1} : view.extent(0),
                           view.extent(2)};
    return {Tensor(view.data(), view.dtype(), shape, view.device()), type.block, type.layout};
  }
  const int row = companion.is_of_a ? 1 : 2;
  const int column = companion.is_of_a ? 2 : 1;
  const std::array shape{view.extent(0), view.extent(row), view.extent(column)};
  const std::array strides{view.stride(0), view.stride(row), view.stride(column)};
  return {Tensor(view.data(), view.dtype(), shape, strides, view.device()), type.block,
          type.layout};
}

}  // namespace

std::vector<CompanionTensor> companion_tensors(const GemmProblem& problem) {
  std::vector<CompanionTensor> tensors;
  append(problem, true, tensors);
  append(problem, false, tensors);
  return tensors;
}

Numbers companion_numbers(const CompanionTensor& companion, std::uint64_t seed) {
  const DType dtype = companion.type.values.dtype;
  const bool is_unsigned = facts(dtype).kind == DTypeKind::unsigned_integer;
  return {.fill = companion.is_zero_point ? Fill::integers : Fill::normal,
          .seed = seed,
          .least = is_unsigned ? 0 : -8,
          .most = is_unsigned ? 15 : 7,
          .is_integer = is_integer(dtype)};
}

ScaledPair bind_companions(const GemmProblem& problem, const Tensor& a, const Tensor& b,
                           const std::vector<Tensor>& tensors) {
  ScaledPair pair{a, b};
  pair.a.table = problem.a_companions.table;
  pair.b.table = problem.b_companions.table;
  pair.a.order = problem.a_companions.order;
  pair.b.order = problem.b_companions.order;
  const std::vector<CompanionTensor> companions = companion_tensors(problem);
  for (std::size_t i = 0; i < companions.size(); ++i) {
    ScaledOperand& operand = companions[i].is_of_a ? pair.a : pair.b;
    const Companion given = as_given(companions[i], tensors[i]);
    if (companions[i].is_zero_point)
      operand.zero_point = given;
    else
      operand.scales.push_back(given);
  }
  return pair;
}

}  // namespace gemmery::api
