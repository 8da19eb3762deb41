// SPDX-License-Identifier: Apache-2.0
#include "providers/host/panel_program.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include "operation/operand_programs.hpp"
#include "providers/host/epilogue_writer.hpp"
#include "providers/host/number.hpp"

namespace gemmery::host {
namespace {

using epilogue::Interval;

PanelProgram::Input input_of(const EpilogueOperand& operand, bool is_a, std::int64_t batch,
                             DType compute) {
  const auto* const tensor = std::get_if<Tensor>(&operand.value);
  if (tensor == nullptr)
    return {.dtype = compute,
            .data = nullptr,
            .lane_stride = 0,
            .depth_stride = 0,
            .number = epilogue::in_compute_type(std::get<double>(operand.value), compute)};
  const MatrixView view = matrix_of(*tensor, batch);
  return {.dtype = view.dtype,
          .data = view.data,
          .lane_stride = is_a ? view.row_stride : view.column_stride,
          .depth_stride = is_a ? view.column_stride : view.row_stride,
          .number = 0};
}

epilogue::CastRule rounding_to(DType dtype) { return {.dtype = dtype}; }

}  // namespace

double PanelProgram::Input::at(std::int64_t lane, std::int64_t depth) const {
  return data == nullptr ? number : load(dtype, data, lane * lane_stride + depth * depth_stride);
}

PanelProgram panel_program(const GemmArguments& arguments, bool is_a, std::int64_t batch) {
  const GemmProblem& problem = arguments.problem();
  const BoundCompanions& memory = is_a ? arguments.a_companions() : arguments.b_companions();
  const DType compute = epilogue_compute_type(problem.accumulator);
  PanelProgram program{.graph = &rules_of(operation::program_of(problem, is_a)->id).program.graph(),
                       .compute = compute,
                       .element = operation::multiplied_type(problem, is_a),
                       .inputs = {}};
  for (const EpilogueOperand& operand : memory.program_operands)
    program.inputs.push_back(input_of(operand, is_a, batch, compute));
  return program;
}

template <class T>
void PanelMachine<T>::run(std::int64_t lane, std::int64_t depth, std::int64_t count,
                          std::int64_t step, T* elements) {
  const epilogue::CastRule rounding = rounding_to(program_.element);
  for (std::int64_t first = 0; first < count; first += epilogue::block_length) {
    const auto block =
        static_cast<int>(std::min<std::int64_t>(epilogue::block_length, count - first));
    T* const own = elements + first * step;
    for (int at = 0; at < block; ++at) machine_.accumulator()[at] = own[at * step];
    for (std::size_t input = 0; input < program_.inputs.size(); ++input)
      for (int at = 0; at < block; ++at)
        machine_.input(input)[at] = static_cast<T>(epilogue::in_compute_type(
            program_.inputs[input].at(lane, depth + first + at), program_.compute));
    machine_.run(block);
    for (int at = 0; at < block; ++at)
      own[at * step] = static_cast<T>(
          epilogue::cast_value(static_cast<double>(machine_.output(0)[at]), rounding));
  }
}

double ElementRange::magnitude() const noexcept {
  if (!values.has_numbers) return reference;  // NaN
  return std::max(std::fabs(values.low), std::fabs(values.high));
}

double ElementRange::deviation() const noexcept {
  if (!values.has_numbers) return 0;  // NaN in every kernel
  if (values.may_be_nan || std::isnan(reference)) return infinity;
  if (values.low == values.high && values.low == reference) return 0;
  // Both differences are of numbers of at most 53 bits; one more unit covers their rounding.
  const double distance = std::max(values.high - reference, reference - values.low);
  return std::max(distance, 0.0) * (1 + 0x1p-52);
}

ElementRange PanelIntervals::at(std::int64_t lane, std::int64_t depth, double decoded,
                                double distance) {
  for (std::size_t input = 0; input < inputs_.size(); ++input)
    inputs_[input] = Interval::exactly(
        epilogue::in_compute_type(program_.inputs[input].at(lane, depth), program_.compute));
  machine_.run(distance == 0 ? Interval::exactly(decoded) : Interval::around(decoded, distance),
               inputs_);
  ElementRange range{
      .values = epilogue::cast_interval(machine_.output(0), rounding_to(program_.element)),
      .reference = decoded};
  reference_.run(lane, depth, 1, 1, &range.reference);
  return range;
}

template class PanelMachine<float>;
template class PanelMachine<double>;

}  // namespace gemmery::host
