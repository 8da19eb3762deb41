// SPDX-License-Identifier: Apache-2.0
// The program of a matrix while it is packed: its operands by lane and depth, its values, and the
// intervals in which a kernel's values lie.
#pragma once

#include <cstdint>
#include <vector>

#include <gemmery/arguments.hpp>

#include "epilogue/evaluate.hpp"
#include "epilogue/evaluate_interval.hpp"
#include "epilogue/graph.hpp"

namespace gemmery::host {

struct PanelProgram {
  // A tensor without data is a number.
  struct Input {
    DType dtype;
    const void* data;
    std::int64_t lane_stride, depth_stride;
    double number;

    double at(std::int64_t lane, std::int64_t depth) const;
  };
  const epilogue::Graph* graph;
  DType compute;
  DType element;  // the type of the values
  std::vector<Input> inputs;
};

// That of A or B in matrix `batch`; the operand must have one.
PanelProgram panel_program(const GemmArguments& arguments, bool is_a, std::int64_t batch);

// Applies a program to elements of one lane. For one thread.
template <class T>
class PanelMachine {
 public:
  explicit PanelMachine(const PanelProgram& program)
      : program_(program), machine_(*program.graph, program.compute) {}

  // The `count` elements from `depth` on, `step` apart, in place.
  void run(std::int64_t lane, std::int64_t depth, std::int64_t count, std::int64_t step,
           T* elements);

 private:
  const PanelProgram& program_;
  epilogue::Machine<T> machine_;
};

// The values that kernels may multiply in place of one element, and that of the reference.
struct ElementRange {
  epilogue::Interval values;
  double reference;

  // The largest magnitude, and the largest distance from the reference: infinite if it has none.
  double magnitude() const noexcept;
  double deviation() const noexcept;
};

class PanelIntervals {
 public:
  explicit PanelIntervals(const PanelProgram& program)
      : program_(program),
        machine_(*program.graph, program.compute),
        reference_(program),
        inputs_(program.inputs.size()) {}

  // `decoded`: the element as the program reads it, with the distance of a kernel's.
  ElementRange at(std::int64_t lane, std::int64_t depth, double decoded, double distance);

 private:
  const PanelProgram& program_;
  epilogue::IntervalMachine machine_;
  PanelMachine<double> reference_;
  std::vector<epilogue::Interval> inputs_;
};

extern template class PanelMachine<float>;
extern template class PanelMachine<double>;

}  // namespace gemmery::host
