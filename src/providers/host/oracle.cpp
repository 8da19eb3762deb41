// SPDX-License-Identifier: Apache-2.0
// Values, bounds and verdicts, element by element.
#include "providers/host/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <tuple>

#include "operation/companions.hpp"
#include "platform/parallel.hpp"
#include "providers/host/convolution.hpp"
#include "providers/host/epilogue_writer.hpp"
#include "providers/host/reference.hpp"

namespace gemmery::host {
namespace {

// The relative error of the reference's own arithmetic, of the magnitude (see exact_sums).
double own_factor(const GemmProblem& problem) {
  if (problem.accumulator == DType::int32) return 0;
  const auto terms = static_cast<double>(problem.k) + 2;
  if (!is_compensated(problem)) return 2 * terms * 0x1p-53;
  const double decoding = operation::has_companions(problem) ? 6 * 0x1p-53 : 0;
  return 2 * (terms * 0x1p-53) * (terms * 0x1p-53) + 0x1p-100 + decoding;
}

// The terms of an element's bound that depend on the problem.
struct BoundTerms {
  ErrorModel model;
  double alpha, beta;     // magnitudes
  double product_factor;  // of alpha · magnitude
  double addend_factor;   // of beta · |C|
  double own;             // of all magnitudes, the oracle's own error
  double underflow;       // of an element
  double deviation_unit;  // of deviations, the rounding of their sums
  bool is_integer;
  bool is_float64;
};

// The error of C in an epilogue that computes in a narrower type: an f64 or int32 C in float32.
double addend_conversion_unit(const GemmProblem& problem) {
  const bool computes_in_double = epilogue_compute_type(problem.accumulator) == DType::float64;
  if (computes_in_double || !problem.c) return 0;
  const DType c = problem.c->dtype;
  return c == DType::float64 || c == DType::int32 ? 0x1p-24 : 0;
}

BoundTerms bound_terms(const GemmArguments& arguments, const DeclaredMath& declared) {
  const GemmProblem& problem = arguments.problem();
  const EpilogueScalars scalars = epilogue_scalars(arguments);
  const ErrorModel model = error_model(declared);
  const double alpha = std::fabs(scalars.alpha);
  return {.model = model,
          .alpha = alpha,
          .beta = std::fabs(scalars.beta),
          .product_factor = model.product_factor(problem.k) + decoding_factor(problem),
          .addend_factor = 2 * model.accumulator_unit + addend_conversion_unit(problem),
          .own = own_factor(problem),
          .underflow = (static_cast<double>(problem.k) * alpha + 2) * model.underflow,
          .deviation_unit = 2 * (static_cast<double>(problem.k) + 2) * 0x1p-53,
          .is_integer = declared.accumulator == DType::int32,
          .is_float64 = declared.accumulator == DType::float64};
}

// True if an accumulator or the epilogue may overflow though its operands are finite: no statement
// then.
bool may_overflow(const BoundTerms& terms, double magnitude, double c) {
  if (!std::isfinite(magnitude) || !std::isfinite(c)) return false;
  if (!terms.is_integer && magnitude * 1.001 >= terms.model.accumulator_max) return true;
  return (terms.alpha * magnitude + terms.beta * c) * 1.001 >= terms.model.compute_max;
}

// `magnitude` is that of the sum, `deviation` that of its elements, `c` is |C|.
double bound_of_floats(const BoundTerms& terms, double magnitude, double deviation, double c) {
  if (may_overflow(terms, magnitude, c)) return infinity;
  // Infinity times 0: an element leaves the range of the type that it is rounded to. (If operands
  // are NaN, the exact value is NaN and needs no bound.)
  if (std::isnan(magnitude)) return infinity;
  const double products = terms.alpha * magnitude;
  const double addend = terms.beta * c;
  return terms.alpha * deviation * (1 + terms.deviation_unit) + terms.product_factor * products +
         terms.addend_factor * addend + terms.own * products + 0x1p-100 * (products + addend) +
         terms.underflow;
}

// Integer sums are exact; the epilogue in float64 may round its two products and their sum.
double bound_of_integers(DoubleDouble product, DoubleDouble addend, DoubleDouble value) {
  const bool is_exact = product.low == 0 && addend.low == 0 && value.low == 0;
  return is_exact ? 0 : 0x1p-52 * (std::fabs(product.high) + std::fabs(addend.high)) + 0x1p-1073;
}

// An exact sum, before the epilogue.
struct Sum {
  DoubleDouble value;
  double magnitude;
  double deviation;  // of programs of operands; infinite or NaN: a kernel's sum may be anything
  bool may_be_nan;
};

struct Element {
  DoubleDouble value;
  double bound;
  bool may_be_nan;
};

// The default program on the sums of one matrix.
class Evaluation {
 public:
  Evaluation(const GemmArguments& arguments, const DeclaredMath& declared, std::int64_t batch)
      : terms_(bound_terms(arguments, declared)),
        scalars_(epilogue_scalars(arguments)),
        view_(arguments, batch) {}

  Element operator()(const Sum& sum, std::int64_t row, std::int64_t column) const {
    if (!std::isfinite(sum.deviation) && terms_.alpha != 0) return {{0, 0}, infinity, true};
    const DoubleDouble product = multiply(sum.value, scalars_.alpha);
    const bool has_c = view_.c.data != nullptr;
    const double c = has_c ? load(view_.c.dtype, view_.c.data,
                                  row * view_.c.row_stride + column * view_.c.column_stride)
                           : 0;
    const DoubleDouble addend = has_c ? multiply({c, 0}, scalars_.beta) : DoubleDouble{};
    const DoubleDouble value = has_c ? add(product, addend) : product;
    const double bound = terms_.is_integer
                             ? bound_of_integers(product, addend, value)
                             : bound_of_floats(terms_, sum.magnitude, sum.deviation, std::fabs(c));
    return {value, bound, sum.may_be_nan};
  }

 private:
  BoundTerms terms_;
  EpilogueScalars scalars_;
  EpilogueWriter view_;
};

// Values and bounds of one matrix.
class MatrixEvaluation {
 public:
  MatrixEvaluation(const GemmArguments& arguments, const DeclaredMath& declared, std::int64_t batch)
      : evaluate_(arguments, declared, batch),
        columns_(arguments.problem().n),
        sums_(exact_sums(arguments, batch, magnitude_of(declared))) {}

  Element at(std::int64_t row, std::int64_t column) const {
    const std::int64_t index = row * columns_ + column;
    const auto i = static_cast<std::size_t>(index);
    return evaluate_({.value = sums_.at(index),
                      .magnitude = sums_.magnitude.empty() ? 0 : sums_.magnitude[i],
                      .deviation = sums_.deviation.empty() ? 0 : sums_.deviation[i],
                      .may_be_nan = !sums_.may_be_nan.empty() && sums_.may_be_nan[i] != 0},
                     row, column);
  }
  std::int64_t columns() const { return columns_; }

 private:
  Evaluation evaluate_;
  std::int64_t columns_;
  ExactSums sums_;
};

// Half a unit beyond the largest number: from here on, rounding to nearest gives infinity.
double overflow_threshold(DType dtype, const Rounding& rounding) {
  if (dtype == DType::float64) return infinity;
  const int exponent = std::ilogb(rounding.largest);
  return rounding.largest + std::ldexp(rounding.unit, exponent);
}

ElementVerdict wrong(double allowed) { return {false, infinity, allowed}; }
ElementVerdict right() { return {true, 0, 0}; }

bool is_same(double got, double expected) {
  return got == expected || (std::isnan(got) && std::isnan(expected));
}

ElementVerdict judge_exact(DType out, DoubleDouble exact, double got) {
  return is_same(got, rounded_to(out, exact)) ? right() : wrong(0);
}

ElementVerdict judge_nonfinite(DType out, const Rounding& rounding, double exact, double bound,
                               double got) {
  // e4m3fn has NaN where the other types have infinity.
  const bool has_no_infinity = out == DType::float8_e4m3fn;
  const bool may_be_infinite = std::fabs(exact) + bound >= overflow_threshold(out, rounding);
  const bool is_right_kind =
      std::isnan(got) ? has_no_infinity : std::signbit(got) == std::signbit(exact);
  return may_be_infinite && is_right_kind ? right() : wrong(bound);
}

double clamp_to(const Rounding& rounding, double value) {
  return std::clamp(value, rounding.lowest, rounding.largest);
}

ElementVerdict judge_distance(double error, double allowed) {
  return {error <= allowed, allowed > 0 ? error / allowed : error > 0 ? infinity : 0, allowed};
}

}  // namespace

ElementVerdict judge_element(DType out, DoubleDouble exact, double bound, double got) {
  if (!std::isfinite(exact.high) || bound == 0) return judge_exact(out, exact, got);
  if (bound == infinity) return right();
  const Rounding rounding = rounding_of(out);
  if (is_integer(out))
    return judge_distance(std::fabs(got - clamp_to(rounding, exact.high)), bound + 0.5);
  if (!std::isfinite(got)) return judge_nonfinite(out, rounding, exact.high, bound, got);
  const double error = std::fabs((got - exact.high) - exact.low);
  return judge_distance(
      error, bound + rounding.unit * (std::fabs(exact.high) + bound) + rounding.smallest / 2);
}

void Comparison::merge(const Comparison& other) {
  const auto key = [](const Mismatch& m) {
    return std::tuple(m.output != "out", m.output, m.batch, m.row, m.column);
  };
  elements += other.elements;
  mismatches += other.mismatches;
  without_bound += other.without_bound;
  worst_ratio = std::max(worst_ratio, other.worst_ratio);
  worst_error = std::max(worst_error, other.worst_error);
  if (other.first && (!first || key(*other.first) < key(*first))) first = other.first;
}

OracleResult compute_oracle(const GemmArguments& arguments, const DeclaredMath& declared,
                            std::int64_t batch) {
  const GemmProblem& problem = arguments.problem();
  const MatrixEvaluation evaluation(arguments, declared, batch);
  OracleResult result;
  const auto count = static_cast<std::size_t>(problem.m * problem.n);
  result.value.reserve(count);
  result.low.reserve(count);
  result.bound.reserve(count);
  for (std::int64_t row = 0; row < problem.m; ++row)
    for (std::int64_t column = 0; column < problem.n; ++column) {
      const Element element = evaluation.at(row, column);
      result.value.push_back(element.value.high);
      result.low.push_back(element.value.low);
      result.bound.push_back(element.bound);
      result.may_be_nan.push_back(element.may_be_nan ? 1 : 0);
    }
  return result;
}

namespace {

void count_element(Comparison& comparison, const Mismatch& at, const ElementVerdict& verdict) {
  ++comparison.elements;
  comparison.worst_ratio = std::max(comparison.worst_ratio, verdict.ratio);
  const double error = std::fabs(at.got - at.exact);
  if (std::isfinite(error)) comparison.worst_error = std::max(comparison.worst_error, error);
  if (verdict.is_right) return;
  ++comparison.mismatches;
  if (!comparison.first) comparison.first = at;
}

ElementVerdict judge(DType out, const Element& element, Criterion criterion, double got) {
  if (element.may_be_nan && std::isnan(got)) return right();
  return criterion == Criterion::exact ? judge_exact(out, element.value, got)
                                       : judge_element(out, element.value, element.bound, got);
}

Comparison compare_rows(const MatrixEvaluation& evaluation, const MatrixView& out,
                        std::int64_t batch, LaneRange rows, Criterion criterion) {
  Comparison comparison;
  for (std::int64_t row = rows.first; row < rows.first + rows.count; ++row)
    for (std::int64_t column = 0; column < evaluation.columns(); ++column) {
      const Element element = evaluation.at(row, column);
      const double got =
          load(out.dtype, out.data, row * out.row_stride + column * out.column_stride);
      const ElementVerdict verdict = judge(out.dtype, element, criterion, got);
      count_element(comparison, {batch, row, column, got, element.value.high, verdict.allowed},
                    verdict);
    }
  return comparison;
}

Comparison compare_matrix(const GemmArguments& arguments, const DeclaredMath& declared,
                          std::int64_t batch, Criterion criterion) {
  const MatrixEvaluation evaluation(arguments, declared, batch);
  const MatrixView out = matrix_of(arguments.out(), batch);
  Comparison all;
  std::mutex mutex;
  platform::parallel_for(arguments.problem().m, 16, [&](std::int64_t begin, std::int64_t end) {
    const Comparison some = compare_rows(evaluation, out, batch, {begin, end - begin}, criterion);
    const std::scoped_lock lock(mutex);
    all.merge(some);
  });
  return all;
}

}  // namespace

Comparison compare_with_oracle(const GemmArguments& arguments, const DeclaredMath& declared,
                               Criterion criterion) {
  Comparison all;
  for (std::int64_t batch = 0; batch < arguments.problem().l; ++batch)
    all.merge(compare_matrix(arguments, declared, batch, criterion));
  return all;
}

Comparison compare_sampled_elements(const GemmArguments& arguments, const DeclaredMath& declared,
                                    int count, std::uint64_t seed) {
  const GemmProblem& problem = arguments.problem();
  Comparison comparison;
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
  };
  if (problem.m == 0 || problem.n == 0 || problem.l == 0) return comparison;
  for (int i = 0; i < count; ++i) {
    const std::int64_t batch = below(problem.l);
    const ProductParts parts = product_parts(arguments, batch);
    if (parts.empty()) return comparison;
    const ProductPart part =
        parts[static_cast<std::size_t>(below(static_cast<std::int64_t>(parts.size())))];
    const std::int64_t part_row = below(part.panels.a.lanes);
    const std::int64_t column = below(problem.n);
    const std::int64_t row = part.rows[part_row];
    const DefinedSum sum = defined_sum(part.panels, part_row, column, magnitude_of(declared));
    const Element element = Evaluation(arguments, declared, batch)(
        {{sum.high, sum.low}, sum.magnitude, 0, sum.may_be_nan}, row, column);
    const MatrixView out = matrix_of(arguments.out(), batch);
    const double got = load(out.dtype, out.data, row * out.row_stride + column * out.column_stride);
    const ElementVerdict verdict = judge(out.dtype, element, Criterion::bound, got);
    count_element(comparison, {batch, row, column, got, element.value.high, verdict.allowed},
                  verdict);
  }
  return comparison;
}

bool is_within_reach_of_oracle(const GemmProblem& problem) {
  // 2·10^11 flops take about 2 seconds on two cores, five for float64; 2^26 elements take 1.5 GiB.
  return problem.flops() <= 2e11 &&
         static_cast<double>(problem.m) * static_cast<double>(problem.n) <= 0x1p26;
}

}  // namespace gemmery::host
