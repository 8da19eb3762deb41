// SPDX-License-Identifier: Apache-2.0
// Runs a program on the host over blocks of values: every node is one loop over a block, and blocks
// are used again as soon as nothing reads them any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gemmery/dtype.hpp>

#include "epilogue/formulas.hpp"
#include "epilogue/graph.hpp"

namespace gemmery::epilogue {

// Values that are computed together; a few blocks of doubles stay in a first-level cache.
inline constexpr int block_length = 256;

// `value` as the cast of a program narrows it.
double cast_value(double value, const CastRule& rule) noexcept;

// What a number, a constant or an element of a tensor is to a program that computes in `compute`
// (float32 or float64).
double in_compute_type(double value, DType compute) noexcept;

// From here on a result is infinite in the compute type; infinity for float64.
double overflow_threshold(DType compute) noexcept;

// One thread's workplace for one program. T is the type of its values. A machine of doubles for a
// program that computes in float32 is the reference: constants and casts are rounded to float32,
// results of operations are not, though what is too large for float32 becomes infinite.
template <class T>
class Machine {
 public:
  // `graph` must outlive the machine.
  Machine(const Graph& graph, DType compute);

  // Blocks to fill before `run`: the sums, and each input of the graph, in the compute type. What
  // was filled in stays there.
  T* accumulator() noexcept { return block(0); }
  T* input(std::size_t index) noexcept { return block(1 + index); }

  // Computes all outputs for the first `count` values of the blocks, at most block_length.
  void run(int count) noexcept;

  // The values of output `index`, before they are rounded to its tensor's type.
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
  bool is_wider_;  // T than the compute type
  std::vector<T> values_;
  std::vector<Step> steps_;
  std::vector<std::size_t> output_blocks_;
};

extern template class Machine<float>;
extern template class Machine<double>;

}  // namespace gemmery::epilogue
