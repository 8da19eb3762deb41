// SPDX-License-Identifier: Apache-2.0
// What tells arguments apart: their problem as a line, and as bytes.
#include <type_traits>
#include <vector>

#include "arguments.hpp"

namespace gemmery::python {
namespace {

// Appends the bytes of numbers one by one: structs may have padding.
class IdentityBytes {
 public:
  template <class Number>
  void add(Number number) {
    static_assert(std::is_arithmetic_v<Number> || std::is_enum_v<Number>);
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void add(const MatrixType& matrix) {
    add(matrix.dtype);
    add(matrix.alignment);
    add(matrix.batch_stride);
    add(matrix.row_stride);
    add(matrix.column_stride);
  }
  void add(const CompanionType& companion) {
    add(companion.block.rows);
    add(companion.block.k);
    add(companion.layout);
    add(companion.values);
  }
  void add(const OperandCompanions& companions) {
    add(companions.scales.size());
    for (const CompanionType& scale : companions.scales) add(scale);
    add(companions.zero_point.has_value());
    if (companions.zero_point) add(*companions.zero_point);
    add(companions.order);
    add(companions.table.has_value());
    if (companions.table)
      for (const float value : companions.table->values) add(value);
    add(companions.program.has_value());
    if (!companions.program) return;
    add(companions.program->id);
    for (const MatrixType& matrix : companions.program->operands) add(matrix);
  }
  void add(const Groups& groups) {
    add(groups.sizes);
    add(groups.ragged);
    add(groups.index_bits);
    add(groups.are_on_host);
    add(groups.outside);
    add(groups.alignment);
    add(groups.expected);
  }
  void add(const Convolution& convolution) {
    add(convolution.kind);
    add(convolution.mode);
    add(convolution.batch);
    add(convolution.dimensions);
    add(convolution.groups);
    for (const std::int64_t count : {convolution.images, convolution.channels, convolution.filters})
      add(count);
    for (const Spatial* const spatial :
         {&convolution.image, &convolution.filter, &convolution.output, &convolution.stride,
          &convolution.dilation, &convolution.lower, &convolution.upper})
      for (const std::int32_t number : *spatial) add(number);
    for (const auto* const strides : {&convolution.a_strides, &convolution.b_strides})
      for (const std::int64_t stride : *strides) add(stride);
  }
  nb::bytes take() const { return nb::bytes(bytes_.data(), bytes_.size()); }

 private:
  std::string bytes_;
};

}  // namespace

std::string problem_line(const PyGemmArguments& arguments) { return to_string(*arguments.native); }

nb::bytes identity_of(const PyGemmArguments& arguments) {
  const GemmArguments& native = *arguments.native;
  const GemmProblem& problem = native.problem();
  IdentityBytes identity;
  for (const std::int64_t extent : {problem.m, problem.n, problem.k, problem.l})
    identity.add(extent);
  for (const MatrixType& matrix : {problem.a, problem.b, problem.out}) identity.add(matrix);
  identity.add(problem.c.has_value());
  if (problem.c) identity.add(*problem.c);
  identity.add(problem.accumulator);
  identity.add(problem.math);
  identity.add(problem.epilogue);
  for (const MatrixType& matrix : problem.epilogue_operands) identity.add(matrix);
  identity.add(problem.a_companions);
  identity.add(problem.b_companions);
  if (problem.groups) identity.add(*problem.groups);
  if (problem.convolution) identity.add(*problem.convolution);
  const ProblemLine line = gemmery::problem_line(native);
  identity.add(line.alpha);
  identity.add(line.beta);
  for (const auto* const numbers : {&line.numbers, &line.a_numbers, &line.b_numbers})
    for (const double number : *numbers) identity.add(number);
  identity.add(native.device().type);
  identity.add(native.device().index);
  return identity.take();
}

}  // namespace gemmery::python
