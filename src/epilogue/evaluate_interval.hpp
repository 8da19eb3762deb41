// SPDX-License-Identifier: Apache-2.0
// Runs a program on intervals: from possible accumulators to all results that a kernel may have,
// each operation adding the error that its row of ops.def declares.
//
// The results of a kernel lie in these intervals, rounded to their tensor's type. If an operation
// jumps within an interval, the result includes both sides; NaN is recorded as possible or certain.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gemmery/dtype.hpp>

#include "epilogue/graph.hpp"

namespace gemmery::epilogue {

// The numbers from low to high, which may include infinities, and whether NaN is possible. Both
// zeros count as one number.
struct Interval {
  double low = 0;
  double high = 0;
  bool may_be_nan = false;
  bool has_numbers = true;  // false: certainly NaN

  static Interval exactly(double x) noexcept {
    if (std::isnan(x)) return {.may_be_nan = true, .has_numbers = false};
    return {.low = x, .high = x};
  }
  // From x - distance to x + distance. Everything if the distance is infinite.
  static Interval around(double x, double distance) noexcept;
  static Interval everything() noexcept {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return {.low = -infinity, .high = infinity, .may_be_nan = true};
  }

  bool contains(double x) const noexcept {
    return std::isnan(x) ? may_be_nan : has_numbers && low <= x && x <= high;
  }
  bool is_one_number() const noexcept { return has_numbers && !may_be_nan && low == high; }
};

Interval hull(const Interval& a, const Interval& b) noexcept;

// The possible results of a cast of a value in `x`. A cast is monotone, so no error is added.
Interval cast_interval(const Interval& x, const CastRule& rule) noexcept;

// The possible contents of memory after a value in `x` is stored as a dtype: rounded once, to
// nearest.
Interval stored_interval(const Interval& x, DType dtype) noexcept;

// A program on intervals, one element at a time. For one thread.
class IntervalMachine {
 public:
  // `graph` has no reductions of blocks and must outlive the machine. `is_brief`: operations may
  // use their brief formulas.
  IntervalMachine(const Graph& graph, DType compute, bool is_brief = false);

  void run(const Interval& accumulator, const std::vector<Interval>& inputs) noexcept;
  // Output `index`, before rounding to its tensor's type.
  const Interval& output(std::size_t index) const noexcept {
    return values_[graph_.outputs[index].value];
  }

 private:
  const Graph& graph_;
  DType compute_;
  bool is_brief_;
  std::vector<Interval> values_;  // of every node
};

// The possible results of a reduction in any order in which at most `depth_of(count)` additions
// follow one another.
class IntervalReduction {
 public:
  IntervalReduction() = default;
  explicit IntervalReduction(Reduction kind) noexcept;

  void add(const Interval& x) noexcept;
  void add(const IntervalReduction& other) noexcept;
  // The result over all elements so far, computed in `compute`; over none it is 0, -infinity or
  // infinity.
  Interval result(DType compute) const noexcept;

  // The most consecutive additions that an element of a sum goes through: some hundreds within a
  // thread and its block, then the blocks of a band of tiles.
  static double depth_of(double count) noexcept;

 private:
  void add_to_extreme(const Interval& x) noexcept;
  void add_to_sum(const Interval& x) noexcept;

  Reduction kind_ = Reduction::none;
  Interval extreme_ = {};                      // max, min and amax
  double low_ = 0, high_ = 0, magnitude_ = 0;  // sums of finite ends
  double count_ = 0;
  bool may_be_nan_ = false, is_nan_ = false;
  bool may_be_plus_ = false, is_plus_ = false;    // infinity
  bool may_be_minus_ = false, is_minus_ = false;  // -infinity
};

}  // namespace gemmery::epilogue
