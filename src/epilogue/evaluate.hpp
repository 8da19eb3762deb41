// SPDX-License-Identifier: Apache-2.0
// Runs a program on the host over blocks of values: every node is one loop over a block, and blocks
// are reused once their values are no longer read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gemmery/dtype.hpp>

#include "epilogue/formulas.hpp"
#include "epilogue/graph.hpp"

namespace gemmery::epilogue {

// Values computed together; a few blocks of doubles fit a first-level cache.
inline constexpr int block_length = 256;

// `value` after a cast of a program.
double cast_value(double value, const CastRule& rule) noexcept;

// A number, a constant or an element of a tensor as seen by a program that computes in `compute`
// (float32 or float64).
double in_compute_type(double value, DType compute) noexcept;

// Results of at least this magnitude are infinite in the compute type; infinity for float64.
double overflow_threshold(DType compute) noexcept;

// The state of one thread for one program. T is the type of its values. A machine of doubles for a
// program that computes in float32 is the reference: constants and casts are rounded to float32,
// results of operations are not, but those too large for float32 become infinite.
template <class T>
class Machine {
 public:
  // `graph` has no reductions of blocks (make_stages) and must outlive the machine.
  Machine(const Graph& graph, DType compute);

  // Blocks to fill before `run`: the accumulators, and each input of the graph, in the compute
  // type. `run` does not change them.
  T* accumulator() noexcept { return block(0); }
  T* input(std::size_t index) noexcept { return block(1 + index); }

  // Computes all outputs for the first `count` values of the blocks, at most block_length.
  void run(int count) noexcept;

  // The values of output `index`, before rounding to its tensor's type.
  const T* output(std::size_t index) const noexcept { return block(output_blocks_[index]); }

 private:
  // One node that computes.
  struct Step {
    Loop<T> loop;  // nullptr: a cast
    CastRule cast;
    std::size_t x, y, z, result;  // blocks
  };

  T* block(std::size_t index) noexcept { return values_.data() + index * block_length; }
  const T* block(std::size_t index) const noexcept { return values_.data() + index * block_length; }
  void cast_block(const Step& step, int count) noexcept;
  void limit_block(T* values, int count) const noexcept;

  DType compute_;
  bool is_wider_;  // true if T is wider than the compute type
  std::vector<T> values_;
  std::vector<Step> steps_;
  std::vector<std::size_t> output_blocks_;
};

extern template class Machine<float>;
extern template class Machine<double>;

}  // namespace gemmery::epilogue
