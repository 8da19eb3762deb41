// SPDX-License-Identifier: Apache-2.0
// Runs the program on parts of tiles of at most a block: load, run, store.
#include "providers/host/program_writer.hpp"

#include <algorithm>
#include <memory>

#include "providers/host/line.hpp"

namespace gemmery::host {
namespace {

// True if loading into T, wider than the compute type, keeps digits that the compute type lacks.
template <class T>
bool needs_rounding(DType dtype, DType compute) {
  if (!std::is_same_v<T, double> || compute != DType::float32) return false;
  return dtype == DType::float64 || dtype == DType::int32 || dtype == DType::uint32;
}

Line line_of(const MatrixView& view, std::int64_t row, std::int64_t column, int count) {
  return {view.dtype, view.data, row * view.row_stride + column * view.column_stride,
          view.column_stride, count};
}

}  // namespace

template <class T>
ProgramRun<T>::ProgramRun(const GemmArguments& arguments, const TileGrid& grid)
    : arguments_(arguments),
      graph_(rules_of(arguments.problem().epilogue).program.graph()),
      compute_(epilogue_compute_type(arguments.problem().accumulator)) {
  add_result(0, arguments.out(), grid);
  const auto& operands = arguments.epilogue_operands();
  const std::size_t input_count = graph_.inputs.size();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto* const tensor = std::get_if<Tensor>(&operands[i].value);
    if (i >= input_count) {
      add_result(1 + i - input_count, *tensor, grid);
    } else if (tensor != nullptr) {
      inputs_.push_back({i, *tensor, needs_rounding<T>(tensor->dtype(), compute_)});
    } else {
      const double number = std::get<double>(operands[i].value);
      numbers_.emplace_back(i, static_cast<T>(epilogue::in_compute_type(number, compute_)));
    }
  }
}

template <class T>
void ProgramRun<T>::add_result(std::size_t output, const Tensor& view, const TileGrid& grid) {
  const epilogue::Reduction kind = graph_.outputs[output].reduction;
  if (kind == epilogue::Reduction::none) {
    results_.push_back({output, view});
  } else {
    reductions_.push_back({output, ReducedResult<T>(kind, view, arguments_.problem(), grid)});
  }
}

// A thread keeps its machine until it runs another program.
template <class T>
epilogue::Machine<T>& ProgramRun<T>::machine_of_thread() const {
  static thread_local std::unique_ptr<Machine> machine;
  static thread_local const epilogue::Graph* graph = nullptr;
  static thread_local DType compute = DType::float32;
  if (machine == nullptr || graph != &graph_ || compute != compute_) {
    machine = std::make_unique<Machine>(graph_, compute_);
    graph = &graph_;
    compute = compute_;
  }
  return *machine;
}

template <class T>
template <class Sum>
void ProgramRun<T>::write(std::int64_t batch, const FinishedTile<Sum>& tile) {
  static_assert(most_tile_columns <= epilogue::block_length);
  if (tile.rows == 0 || tile.columns == 0) return;
  Machine& machine = machine_of_thread();
  for (const auto& [index, number] : numbers_)
    std::fill_n(machine.input(index), epilogue::block_length, number);
  const int lines = epilogue::block_length / tile.columns;
  for (int first = 0; first < tile.rows; first += lines) {
    const Part part{batch, tile.row + first, tile.column, std::min(lines, tile.rows - first),
                    tile.columns};
    T* sum = machine.accumulator();
    for (int row = first; row < first + part.rows; ++row) {
      const Sum* const sums = tile.sums + row * tile.row_stride;
      for (int column = 0; column < tile.columns; ++column) *sum++ = static_cast<T>(sums[column]);
    }
    load_inputs(part, machine);
    machine.run(part.rows * part.columns);
    store_results(part, machine);
  }
}

template <class T>
void ProgramRun<T>::load_inputs(const Part& part, Machine& machine) const {
  for (const Input& input : inputs_) {
    const MatrixView view = matrix_of(input.view, part.batch);
    T* const values = machine.input(input.index);
    for (int row = 0; row < part.rows; ++row)
      load_line(line_of(view, part.row + row, part.column, part.columns),
                values + row * part.columns);
    if (!input.is_rounded) continue;
    std::transform(values, values + part.rows * part.columns, values,
                   [](T value) { return static_cast<T>(static_cast<float>(value)); });
  }
}

template <class T>
void ProgramRun<T>::store_results(const Part& part, const Machine& machine) {
  for (const FullResult& result : results_) {
    const MatrixView view = matrix_of(result.view, part.batch);
    const T* const values = machine.output(result.output);
    for (int row = 0; row < part.rows; ++row)
      store_line(line_of(view, part.row + row, part.column, part.columns),
                 values + row * part.columns);
  }
  for (Reduced& reduced : reductions_)
    reduced.result.take({part.batch, part.row, part.column, part.rows, part.columns,
                         machine.output(reduced.output)});
}

template <class T>
void ProgramRun<T>::finish() const {
  for (const Reduced& reduced : reductions_) reduced.result.store();
}

template class ProgramRun<float>;
template class ProgramRun<double>;
template void ProgramRun<float>::write(std::int64_t, const FinishedTile<float>&);
template void ProgramRun<float>::write(std::int64_t, const FinishedTile<double>&);
template void ProgramRun<float>::write(std::int64_t, const FinishedTile<std::int32_t>&);
template void ProgramRun<double>::write(std::int64_t, const FinishedTile<float>&);
template void ProgramRun<double>::write(std::int64_t, const FinishedTile<double>&);
template void ProgramRun<double>::write(std::int64_t, const FinishedTile<std::int32_t>&);

}  // namespace gemmery::host
