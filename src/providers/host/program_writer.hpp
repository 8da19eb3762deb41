// SPDX-License-Identifier: Apache-2.0
// The end of a path with any epilogue: computes the program's results from finished accumulators
// and stores them to out and to its further results.
#pragma once

#include <cstdint>
#include <vector>

#include <gemmery/arguments.hpp>

#include "epilogue/blocks.hpp"
#include "epilogue/evaluate.hpp"
#include "providers/host/blocked.hpp"
#include "providers/host/epilogue_writer.hpp"
#include "providers/host/reduced_result.hpp"

namespace gemmery::host {

inline bool has_program(const GemmArguments& arguments) {
  return arguments.problem().epilogue != default_epilogue;
}

// One call with a program, all batches and threads. T is the type of the computation: float for
// float32 programs on a fast path; double for float64 programs, and for the reference of any.
template <class T>
class ProgramRun {
 public:
  ProgramRun(const GemmArguments& arguments, const TileGrid& grid);

  // Takes tiles in any order, from any thread.
  template <class Sum>
  void write(std::int64_t batch, const FinishedTile<Sum>& tile);

  // After all tiles: computes programs with reductions of blocks, and stores reductions.
  void finish();

 private:
  using Machine = epilogue::Machine<T>;

  struct Input {
    std::size_t index;  // of the graph
    Tensor view;
    bool is_rounded;  // to the compute type, if T is wider
  };
  struct FullResult {
    std::size_t output;  // of the graph
    Tensor view;
  };
  struct BlockResult {
    std::size_t output;
    Tensor view;
    epilogue::Block block;
    ScaleLayout layout;
  };
  struct Reduced {
    std::size_t output;
    ReducedResult<T> result;
  };

  // Lines of a tile that are computed together.
  struct Part {
    std::int64_t batch, row, column;
    int rows, columns;
  };

  // The values of one reduction within the program, of all blocks of one matrix.
  struct BlockValues {
    std::int64_t columns = 0;  // blocks along a row
    std::vector<double> values = {};
  };

  Machine& machine_of_thread() const;
  bool is_staged() const { return !stages_.reductions.empty(); }
  void add_result(std::size_t output, const Tensor& view, const TileGrid& grid);
  void load_inputs(const Part& part, Machine& machine) const;
  void store_results(const Part& part, const Machine& machine);
  void store_blocks(const Part& part, const Machine& machine) const;
  void begin_stages();
  template <class Sum>
  void keep(std::int64_t batch, const FinishedTile<Sum>& tile);
  void run_stages(std::int64_t batch);
  void run_part(const epilogue::Stage& stage, const Part& part, Machine& machine);
  void load_blocks(const Part& part, Machine& machine) const;
  void reduce_blocks(const epilogue::Stage& stage, const Part& part, const Machine& machine);
  std::int64_t band_of(const epilogue::Stage& stage) const;

  const GemmArguments& arguments_;
  const epilogue::Graph& graph_;
  DType compute_;
  TileGrid grid_;
  std::vector<Input> inputs_;
  std::vector<std::pair<std::size_t, T>> numbers_;
  std::vector<FullResult> results_;
  std::vector<BlockResult> block_results_;
  std::vector<Reduced> reductions_;
  // Of a program with reductions of blocks: the accumulators of all batches, and the values of the
  // matrix that is computed.
  epilogue::Stages stages_;
  std::vector<T> sums_;
  std::vector<BlockValues> blocks_;
};

// A run in the form that a blocked product calls for every tile of a batch.
template <class T>
struct ProgramWriter {
  ProgramRun<T>& run;
  std::int64_t batch;

  template <class Sum>
  void operator()(const FinishedTile<Sum>& tile) const {
    run.write(batch, tile);
  }
};

extern template class ProgramRun<float>;
extern template class ProgramRun<double>;

}  // namespace gemmery::host
