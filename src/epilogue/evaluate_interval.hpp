// SPDX-License-Identifier: Apache-2.0
// Runs a program on intervals: from what the sums may be to everything that a kernel may make of
// them, each operation adding the error that its row of ops.def declares.
//
// The results of a kernel lie in these intervals, rounded to their tensor's type. Where an
// operation jumps within an interval, both sides belong to the result; where NaN is possible, but
// not certain, it says so.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gemmery/dtype.hpp>

#include "epilogue/graph.hpp"

namespace gemmery::epilogue {

// The numbers from low to high, infinities among them, and NaN or not. Both zeros are one number.
struct Interval {
  double low = 0;
  double high = 0;
  bool may_be_nan = false;
  bool has_numbers = true;  // false: NaN, certainly

  static Interval exactly(double x) noexcept {
    if (std::isnan(x)) return {.may_be_nan = true, .has_numbers = false};
    return {.low = x, .high = x};
  }
  // From `distance` below to as much above. Everything, where the distance is infinite.
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

// What may come out of narrowing a value of `x`. Narrowing is monotone, so no error is added.
Interval cast_interval(const Interval& x, const CastRule& rule) noexcept;

// What may stand in memory where a value of `x` is stored as a dtype: rounded once, to nearest.
Interval stored_interval(const Interval& x, DType dtype) noexcept;

// A program on intervals, one element at a time. Belongs to one thread.
class IntervalMachine {
 public:
  // `graph` must outlive the machine. `is_brief`: operations may be computed by their brief
  // formulas.
  IntervalMachine(const Graph& graph, DType compute, bool is_brief = false);

  void run(const Interval& accumulator, const std::vector<Interval>& inputs) noexcept;
  // Of output `index`, before it is rounded to its tensor's type.
  const Interval& output(std::size_t index) const noexcept {
    return values_[graph_.outputs[index].value];
  }

 private:
  const Graph& graph_;
  DType compute_;
  bool is_brief_;
  std::vector<Interval> values_;  // of every node
};

// What may come out of a reduction, whatever its order, where at most `depth_of(count)` elements
// meet one after the other.
class IntervalReduction {
 public:
  IntervalReduction() = default;
  explicit IntervalReduction(Reduction kind) noexcept;

  void add(const Interval& x) noexcept;
  void add(const IntervalReduction& other) noexcept;
  // Of everything that was added, computed in `compute`; for nothing 0, -infinity or infinity.
  Interval result(DType compute) const noexcept;

  // Additions in a row that one element of a sum may go through: some hundreds within a thread and
  // its block, then the blocks of a band of tiles.
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
