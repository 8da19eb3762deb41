// SPDX-License-Identifier: Apache-2.0
// Runs the program on parts of tiles of at most a block: load, run, store.
#include "providers/host/program_writer.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "epilogue/reduction.hpp"
#include "platform/parallel.hpp"
#include "providers/host/block_places.hpp"
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

// The index of an element's block.
std::size_t block_index(const epilogue::Block& block, std::int64_t columns, std::int64_t row,
                        std::int64_t column) {
  return static_cast<std::size_t>(epilogue::block_of(row, block.rows) * columns +
                                  epilogue::block_of(column, block.columns));
}

}  // namespace

template <class T>
ProgramRun<T>::ProgramRun(const GemmArguments& arguments, const TileGrid& grid)
    : arguments_(arguments),
      graph_(rules_of(arguments.problem().epilogue).program.graph()),
      compute_(epilogue_compute_type(arguments.problem().accumulator)),
      grid_(grid) {
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
  if (epilogue::has_block_reductions(graph_)) begin_stages();
}

template <class T>
void ProgramRun<T>::add_result(std::size_t output, const Tensor& view, const TileGrid& grid) {
  const epilogue::Reduction kind = graph_.outputs[output].reduction;
  if (output > 0) {
    const EpilogueOperandRule& rule =
        rules_of(arguments_.problem().epilogue).operands[graph_.inputs.size() + output - 1];
    if (rule.block != epilogue::one_element) {
      block_results_.push_back({output, view, rule.block, rule.layout});
      return;
    }
  }
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
  if (is_staged()) return keep(batch, tile);
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
  store_blocks(part, machine);
  for (Reduced& reduced : reductions_)
    reduced.result.take({part.batch, part.row, part.column, part.rows, part.columns,
                         machine.output(reduced.output)});
}

template <class T>
void ProgramRun<T>::finish() {
  if (is_staged())
    for (std::int64_t batch = 0; batch < arguments_.problem().l; ++batch) run_stages(batch);
  for (const Reduced& reduced : reductions_) reduced.result.store();
}

// --- programs with reductions of blocks ---------------------------------------------------------
//
// Blocks are larger than tiles, so the accumulators of all tiles are kept. After the last tile the
// stages of the program follow one another, each over whole matrices.

template <class T>
void ProgramRun<T>::begin_stages() {
  const GemmProblem& problem = arguments_.problem();
  stages_ = epilogue::make_stages(graph_);
  sums_.resize(static_cast<std::size_t>(problem.l * problem.m * problem.n));
  for (const epilogue::BlockReduction& reduction : stages_.reductions) {
    const std::int64_t columns = epilogue::count_blocks(problem.n, reduction.block.columns);
    const std::int64_t rows = epilogue::count_blocks(problem.m, reduction.block.rows);
    blocks_.push_back({columns, std::vector<double>(static_cast<std::size_t>(rows * columns))});
  }
}

template <class T>
template <class Sum>
void ProgramRun<T>::keep(std::int64_t batch, const FinishedTile<Sum>& tile) {
  const GemmProblem& problem = arguments_.problem();
  for (int row = 0; row < tile.rows; ++row) {
    const Sum* const sums = tile.sums + row * tile.row_stride;
    T* const kept = sums_.data() + (batch * problem.m + tile.row + row) * problem.n + tile.column;
    for (int column = 0; column < tile.columns; ++column)
      kept[column] = static_cast<T>(sums[column]);
  }
}

// The rows that one thread computes: whole tiles and whole blocks.
template <class T>
std::int64_t ProgramRun<T>::band_of(const epilogue::Stage& stage) const {
  std::int64_t band = grid_.rows;
  for (const std::size_t at : stage.reductions) {
    const std::int32_t rows = stages_.reductions[at].block.rows;
    if (rows == 0) return std::max<std::int64_t>(arguments_.problem().m, 1);
    band = std::lcm(band, rows);
  }
  return band;
}

template <class T>
void ProgramRun<T>::run_stages(std::int64_t batch) {
  const GemmProblem& problem = arguments_.problem();
  for (const epilogue::Stage& stage : stages_.stages) {
    for (const std::size_t at : stage.reductions)
      std::ranges::fill(blocks_[at].values,
                        epilogue::start_of<double>(stages_.reductions[at].kind));
    platform::parallel_for(problem.m, band_of(stage), [&](std::int64_t begin, std::int64_t end) {
      Machine machine(stage.graph, compute_);
      for (const auto& [index, number] : numbers_)
        std::fill_n(machine.input(index), epilogue::block_length, number);
      const std::int64_t lines = std::min(grid_.rows, epilogue::block_length / grid_.columns);
      for (std::int64_t row = begin; row < end; row += lines)
        for (std::int64_t column = 0; column < problem.n; column += grid_.columns)
          run_part(stage,
                   {batch, row, column, static_cast<int>(std::min(lines, end - row)),
                    static_cast<int>(std::min<std::int64_t>(grid_.columns, problem.n - column))},
                   machine);
    });
  }
}

template <class T>
void ProgramRun<T>::run_part(const epilogue::Stage& stage, const Part& part, Machine& machine) {
  const GemmProblem& problem = arguments_.problem();
  for (int row = 0; row < part.rows; ++row)
    std::copy_n(sums_.data() + (part.batch * problem.m + part.row + row) * problem.n + part.column,
                part.columns, machine.accumulator() + row * part.columns);
  load_inputs(part, machine);
  load_blocks(part, machine);
  machine.run(part.rows * part.columns);
  if (stage.reductions.empty())
    store_results(part, machine);
  else
    reduce_blocks(stage, part, machine);
}

template <class T>
void ProgramRun<T>::load_blocks(const Part& part, Machine& machine) const {
  for (std::size_t at = 0; at < blocks_.size(); ++at) {
    T* value = machine.input(graph_.inputs.size() + at);
    for (int row = 0; row < part.rows; ++row)
      for (int column = 0; column < part.columns; ++column)
        *value++ = static_cast<T>(
            blocks_[at].values[block_index(stages_.reductions[at].block, blocks_[at].columns,
                                           part.row + row, part.column + column)]);
  }
}

template <class T>
void ProgramRun<T>::reduce_blocks(const epilogue::Stage& stage, const Part& part,
                                  const Machine& machine) {
  for (std::size_t output = 0; output < stage.reductions.size(); ++output) {
    const std::size_t at = stage.reductions[output];
    const auto& [kind, block] = stages_.reductions[at];
    const T* value = machine.output(output);
    for (int row = 0; row < part.rows; ++row)
      for (int column = 0; column < part.columns; ++column) {
        double& result = blocks_[at].values[block_index(block, blocks_[at].columns, part.row + row,
                                                        part.column + column)];
        result = epilogue::combine(kind, result, epilogue::reduced<double>(kind, *value++));
      }
  }
}

// The first element of a block stores its value.
template <class T>
void ProgramRun<T>::store_blocks(const Part& part, const Machine& machine) const {
  for (const BlockResult& result : block_results_) {
    const BlockPlaces places(result.block, result.layout, result.view, arguments_);
    const T* value = machine.output(result.output);
    for (int row = 0; row < part.rows; ++row)
      for (int column = 0; column < part.columns; ++column, ++value) {
        const auto place = places.find(part.row + row, part.column + column);
        if (!place) continue;
        store_line({result.view.dtype(), first_of(result.view, part.batch), *place, 1, 1}, value);
      }
  }
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
