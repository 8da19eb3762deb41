// SPDX-License-Identifier: Apache-2.0
// Operations on intervals: evaluates an operation at the ends of its operands and at its turning
// points in between, takes the hull of all results, and adds the declared errors.
#include "epilogue/evaluate_interval.hpp"

#include <algorithm>
#include <array>

#include "core/invariant.hpp"
#include "core/number.hpp"
#include "epilogue/evaluate.hpp"
#include "epilogue/formulas.hpp"

namespace gemmery::epilogue {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double tiny = std::numeric_limits<double>::denorm_min();

double unit_of(DType compute) noexcept { return compute == DType::float64 ? 0x1p-53 : 0x1p-24; }

// --- points ---

// The points at which an operation is evaluated: between neighbouring points of an operand it is
// monotone.
class Points {
 public:
  Points(const Interval& x, DType compute, std::span<const double> turns) noexcept {
    if (x.may_be_nan || !x.has_numbers) append(not_a_number);
    if (!x.has_numbers) return;
    append(x.low);
    if (x.high != x.low) append(x.high);
    if (x.low <= 0 && 0 <= x.high) append_zero(x);
    append_largest(x, compute);
    for (const double turn : turns) append_turn(x, turn);
  }
  const double* begin() const noexcept { return points_.data(); }
  const double* end() const noexcept { return points_.data() + count_; }

 private:
  // Both zeros and their neighbours: quotients, powers and signs change here.
  void append_zero(const Interval& x) noexcept {
    append(0.0);
    append(-0.0);
    if (x.low < 0) append(-tiny);
    if (x.high > 0) append(tiny);
  }
  // An infinite end stands for finite numbers, too.
  void append_largest(const Interval& x, DType compute) noexcept {
    if (x.low == x.high) return;
    const double largest = number::rounding_of(compute).largest;
    if (x.high == infinity && x.low < largest) append(largest);
    if (x.low == -infinity && x.high > -largest) append(-largest);
  }
  void append_turn(const Interval& x, double turn) noexcept {
    if (turn == 0 || turn <= x.low || turn >= x.high) return;
    for (const double point :
         {std::nextafter(turn, -infinity), turn, std::nextafter(turn, infinity)})
      append(point);
  }
  void append(double point) noexcept {
    if (count_ < points_.size()) points_[count_++] = point;
  }

  std::array<double, 20> points_;  // ends, NaN, zeros, largest: 9; and three per turning point
  std::size_t count_ = 0;
};

// --- hulls ---

void include(Interval& interval, double low, double high) noexcept {
  if (!interval.has_numbers) {
    interval.low = low;
    interval.high = high;
    interval.has_numbers = true;
    return;
  }
  interval.low = std::min(interval.low, low);
  interval.high = std::max(interval.high, high);
}

Interval nothing() noexcept { return {.has_numbers = false}; }

// Values beyond the compute type's largest number become infinite.
Interval limit_to(DType compute, Interval x) noexcept {
  if (compute == DType::float64 || !x.has_numbers) return x;
  const double largest = number::rounding_of(compute).largest;
  const double threshold = overflow_threshold(compute);
  if (x.high > largest) x.high = infinity;
  if (x.low < -largest) x.low = -infinity;
  if (x.low >= threshold) x.low = infinity;
  if (x.high <= -threshold) x.high = -infinity;
  return x;
}

// --- errors ---

// Errors by a row of ops.def, or by its brief formula, and by the compute type.
struct ErrorTerms {
  double relative = 0, absolute = 0;  // including those of this evaluation in double
  double underflow = 0;

  ErrorTerms(const OpErrors& row, DType compute) noexcept {
    const bool is_exact = row.relative == 0 && row.absolute == 0;
    if (is_exact) return;
    const double unit = unit_of(compute);
    relative = unit * row.relative + 0x1p-53 * 2 * std::max(row.relative, 1.0);
    absolute = (unit + 0x1p-53) * row.absolute;
    // Sums and products lose at most half the smallest number; functions made of the hardware's
    // approximations may flush subnormal numbers.
    const bool is_rounded_once = row.relative <= 1 && row.absolute == 0;
    const bool is_double = compute == DType::float64;
    underflow =
        is_rounded_once ? (is_double ? tiny : 0x1p-149) : (is_double ? 0x1p-1022 : 0x1p-126);
  }
  bool is_none() const noexcept { return relative == 0 && absolute == 0; }
  double of(double result, double x) const noexcept {
    return relative * std::fabs(result) + absolute * std::max(1.0, x) + underflow;
  }
};

void include_result(Interval& interval, double result, const ErrorTerms& terms, double x) noexcept {
  if (std::isnan(result)) {
    interval.may_be_nan = true;
    return;
  }
  if (terms.is_none() || std::isinf(result)) return include(interval, result, result);
  const double error = terms.of(result, x);
  if (!std::isfinite(error)) return include(interval, -infinity, infinity);
  include(interval, result - error, result + error);
}

double largest_magnitude(const Interval& x) noexcept {
  return x.has_numbers ? std::max(std::fabs(x.low), std::fabs(x.high)) : 0;
}

// --- operations ---

struct Operands {
  std::array<Interval, 3> values;
  int count;
};

bool overlap(const Interval& x, const Interval& y) noexcept {
  return x.has_numbers && y.has_numbers && x.low <= y.high && y.low <= x.high;
}

// A negative base with an exponent that is not known exactly gives NaN, or any sign.
bool is_wild_power(Op op, const Operands& operands) noexcept {
  const auto& [x, y, z] = operands.values;
  return op == Op::pow && x.has_numbers && x.low < 0 && !y.is_one_number();
}

// A base of zero, whose sign an interval does not record, with a negative exponent that is not
// known exactly: for an odd exponent, which need not be an end of the interval, pow(-0, y) is
// -infinity.
bool is_power_of_either_zero(Op op, const Operands& operands) noexcept {
  const auto& [x, y, z] = operands.values;
  return op == Op::pow && x.has_numbers && x.contains(0) && y.has_numbers && y.low < 0 &&
         !y.is_one_number();
}

// pow(1, NaN) and pow(NaN, 0) are 1, at a point that need not be an end of an interval.
bool is_one_beside_nan(Op op, const Operands& operands) noexcept {
  const auto& [x, y, z] = operands.values;
  return op == Op::pow && ((y.may_be_nan && x.contains(1)) || (x.may_be_nan && y.contains(0)));
}

Interval apply_to_points(Op op, const Operands& operands, DType compute, bool is_brief) noexcept {
  const OpRow& row = row_of(op);
  const auto& [x, y, z] = operands.values;
  const Interval unread = Interval::exactly(1);
  const Points xs(x, compute, row.turns);
  const Points ys(operands.count > 1 ? y : unread, compute, {});
  const Points zs(operands.count > 2 ? z : unread, compute, {});
  const ErrorTerms terms(is_brief ? row.brief.value_or(row.errors) : row.errors, compute);
  const Function<double> formula = formula_of<double>(op);
  const double reach = largest_magnitude(x);
  Interval result = nothing();
  for (const double at_x : xs) {
    const double size = std::isfinite(reach) ? reach : std::fabs(at_x);
    for (const double at_y : ys)
      for (const double at_z : zs) include_result(result, formula(at_x, at_y, at_z), terms, size);
  }
  return limit_to(compute, result);
}

Interval apply_interval(Op op, const Operands& operands, DType compute, bool is_brief) noexcept {
  if (is_wild_power(op, operands)) return Interval::everything();
  const auto& [x, y, z] = operands.values;
  Interval result = apply_to_points(op, operands, compute, is_brief);
  const bool is_open = row_of(op).kind == OpKind::compare && overlap(x, y) &&
                       !(x.is_one_number() && y.is_one_number());
  if (is_open) include(result, 0, 1);
  if (is_power_of_either_zero(op, operands)) include(result, -infinity, -infinity);
  if (is_one_beside_nan(op, operands)) include(result, 1, 1);
  return result;
}

}  // namespace

Interval Interval::around(double x, double distance) noexcept {
  if (!std::isfinite(x)) return exactly(x);
  if (distance == 0) return exactly(x);
  if (!std::isfinite(distance)) return everything();
  return {.low = std::nextafter(x - distance, -infinity),
          .high = std::nextafter(x + distance, infinity)};
}

Interval hull(const Interval& a, const Interval& b) noexcept {
  Interval result = a;
  result.may_be_nan = a.may_be_nan || b.may_be_nan;
  if (b.has_numbers) include(result, b.low, b.high);
  return result;
}

Interval cast_interval(const Interval& x, const CastRule& rule) noexcept {
  Interval result = nothing();
  if (x.may_be_nan || !x.has_numbers) {
    const double of_nan = cast_value(not_a_number, rule);  // 0 for integers
    if (std::isnan(of_nan))
      result.may_be_nan = true;
    else
      include(result, of_nan, of_nan);
  }
  if (!x.has_numbers) return result;
  const double low = cast_value(x.low, rule);
  const double high = cast_value(x.high, rule);
  const bool overflows_to_nan = std::isnan(low) || std::isnan(high);
  if (!overflows_to_nan) {
    include(result, low, high);
    return result;
  }
  // A type without infinity: NaN beyond its largest number, on either side.
  result.may_be_nan = true;
  const double largest = number::rounding_of(rule.dtype).largest;
  const bool all_beyond = std::isnan(low) && std::isnan(high) && (x.low > 0) == (x.high > 0);
  if (!all_beyond)
    include(result, std::isnan(low) ? -largest : low, std::isnan(high) ? largest : high);
  return result;
}

Interval stored_interval(const Interval& x, DType dtype) noexcept {
  return cast_interval(x, {.dtype = dtype});
}

IntervalMachine::IntervalMachine(const Graph& graph, DType compute, bool is_brief)
    : graph_(graph), compute_(compute), is_brief_(is_brief), values_(graph.nodes.size()) {
  for (std::size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    if (node.kind == NodeKind::constant)
      values_[id] = Interval::exactly(in_compute_type(node.constant, compute));
  }
}

void IntervalMachine::run(const Interval& accumulator,
                          const std::vector<Interval>& inputs) noexcept {
  for (std::size_t id = 0; id < graph_.nodes.size(); ++id) {
    const Node& node = graph_.nodes[id];
    const auto operand = [&](std::size_t index) {
      const NodeId from = node.operands[index];
      return from == no_node ? Interval{} : values_[from];
    };
    switch (node.kind) {
      case NodeKind::accumulator:
        values_[id] = accumulator;
        break;
      case NodeKind::input:
        values_[id] = inputs[node.input];
        break;
      case NodeKind::constant:
        break;
      case NodeKind::reduction:
        abort_on_bug("a machine runs one stage of a program");
      case NodeKind::cast:
        values_[id] = stored_interval(cast_interval(operand(0), node.cast), compute_);
        break;
      case NodeKind::operation:
        values_[id] =
            apply_interval(node.op, {{operand(0), operand(1), operand(2)}, row_of(node.op).arity},
                           compute_, is_brief_);
        break;
    }
  }
}

// --- reductions ---

IntervalReduction::IntervalReduction(Reduction kind) noexcept : kind_(kind) {
  const double start = kind == Reduction::max ? -infinity : kind == Reduction::min ? infinity : 0;
  extreme_ = Interval::exactly(start);
}

double IntervalReduction::depth_of(double count) noexcept {
  return std::min(count, 512 + std::sqrt(count));
}

void IntervalReduction::add(const Interval& x) noexcept {
  ++count_;
  may_be_nan_ = may_be_nan_ || x.may_be_nan;
  is_nan_ = is_nan_ || !x.has_numbers;
  if (!x.has_numbers) return;
  if (kind_ == Reduction::sum) return add_to_sum(x);
  if (kind_ != Reduction::amax) return add_to_extreme(x);
  const double high = largest_magnitude(x);
  const double low = x.low <= 0 && 0 <= x.high ? 0 : std::min(std::fabs(x.low), std::fabs(x.high));
  add_to_extreme({.low = low, .high = high});
}

void IntervalReduction::add_to_extreme(const Interval& x) noexcept {
  const bool is_min = kind_ == Reduction::min;
  extreme_.low = is_min ? std::min(extreme_.low, x.low) : std::max(extreme_.low, x.low);
  extreme_.high = is_min ? std::min(extreme_.high, x.high) : std::max(extreme_.high, x.high);
}

void IntervalReduction::add_to_sum(const Interval& x) noexcept {
  may_be_plus_ = may_be_plus_ || x.high == infinity;
  may_be_minus_ = may_be_minus_ || x.low == -infinity;
  is_plus_ = is_plus_ || x.low == infinity;
  is_minus_ = is_minus_ || x.high == -infinity;
  const double low = std::isfinite(x.low) ? x.low : 0;
  const double high = std::isfinite(x.high) ? x.high : 0;
  low_ += low;
  high_ += high;
  magnitude_ += std::max(std::fabs(low), std::fabs(high));
}

void IntervalReduction::add(const IntervalReduction& other) noexcept {
  count_ += other.count_;
  may_be_nan_ = may_be_nan_ || other.may_be_nan_;
  is_nan_ = is_nan_ || other.is_nan_;
  may_be_plus_ = may_be_plus_ || other.may_be_plus_;
  may_be_minus_ = may_be_minus_ || other.may_be_minus_;
  is_plus_ = is_plus_ || other.is_plus_;
  is_minus_ = is_minus_ || other.is_minus_;
  low_ += other.low_;
  high_ += other.high_;
  magnitude_ += other.magnitude_;
  add_to_extreme(other.extreme_);
}

Interval IntervalReduction::result(DType compute) const noexcept {
  Interval result = extreme_;
  result.may_be_nan = may_be_nan_ || is_nan_;
  result.has_numbers = !is_nan_;
  if (kind_ != Reduction::sum || is_nan_) return result;
  result.may_be_nan = result.may_be_nan || (may_be_plus_ && may_be_minus_);
  if (is_plus_ && is_minus_) return {.may_be_nan = true, .has_numbers = false};
  // This evaluation adds one by one, in double.
  const double unit = unit_of(compute) * depth_of(count_) + 0x1p-53 * count_;
  const double error = count_ > 1 ? unit * magnitude_ : 0;
  result.low = may_be_minus_ ? -infinity : is_plus_ ? infinity : low_ - error;
  result.high = may_be_plus_ ? infinity : is_minus_ ? -infinity : high_ + error;
  // Partial sums may exceed the largest number.
  if (magnitude_ * 1.001 > number::rounding_of(compute).largest) return Interval::everything();
  return limit_to(compute, result);
}

}  // namespace gemmery::epilogue
