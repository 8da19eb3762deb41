// SPDX-License-Identifier: Apache-2.0
// The end of a path with any epilogue: computes the program's results from finished accumulators
// and stores them to out and to its further results.
#pragma once

#include <cstdint>
#include <vector>

#include <gemmery/arguments.hpp>

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

  // After all tiles: stores the reductions.
  void finish() const;

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
  struct Reduced {
    std::size_t output;
    ReducedResult<T> result;
  };

  // Lines of a tile that are computed together.
  struct Part {
    std::int64_t batch, row, column;
    int rows, columns;
  };

  Machine& machine_of_thread() const;
  void add_result(std::size_t output, const Tensor& view, const TileGrid& grid);
  void load_inputs(const Part& part, Machine& machine) const;
  void store_results(const Part& part, const Machine& machine);

  const GemmArguments& arguments_;
  const epilogue::Graph& graph_;
  DType compute_;
  std::vector<Input> inputs_;
  std::vector<std::pair<std::size_t, T>> numbers_;
  std::vector<FullResult> results_;
  std::vector<Reduced> reductions_;
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
