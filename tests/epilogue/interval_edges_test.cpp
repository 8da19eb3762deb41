// SPDX-License-Identifier: Apache-2.0
// Every operation on intervals between special numbers (zeros of both signs, the smallest and the
// largest numbers, infinities, NaN, odd and even small integers): the float32 result for any of
// these numbers must be in the result's interval.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "epilogue/evaluate.hpp"
#include "epilogue/evaluate_interval.hpp"
#include "epilogue/math.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::epilogue {
namespace {

using Limits = std::numeric_limits<float>;

constexpr float nan = Limits::quiet_NaN();
constexpr float edges[] = {-Limits::infinity(),
                           -Limits::max(),
                           -40,
                           -3,
                           -2,
                           -1,
                           -0.5,
                           -Limits::min(),
                           -0.0F,
                           0.0F,
                           1e-45F,
                           0.5,
                           1,
                           2,
                           3,
                           40,
                           Limits::max(),
                           Limits::infinity()};

// An operand's interval, and the special numbers in it.
struct Operand {
  Interval interval;
  std::vector<float> samples;

  explicit Operand(const Interval& held) : interval(held) {
    for (const float edge : edges)
      if (held.contains(edge)) samples.push_back(edge);
    if (held.may_be_nan) samples.push_back(nan);
  }
};

std::vector<Operand> all_operands() {
  std::vector<Operand> operands{Operand(Interval::exactly(nan))};
  for (const float low : edges) {
    // The only float32 number in this interval is the special one, which is not an end.
    if (std::isfinite(low)) operands.emplace_back(Interval::around(low, 1e-50));
    for (const float high : edges)
      for (const bool may_be_nan : {false, true})
        if (low <= high)
          operands.emplace_back(Interval{.low = low, .high = high, .may_be_nan = may_be_nan});
  }
  return operands;
}

// A program with one operation on the accumulator, `a` and `b`.
Program program_of(const OpRow& row) {
  const bool takes_truth = row.kind == OpKind::logical || row.kind == OpKind::choose;
  std::string call = std::string(row.name) + (takes_truth ? "(accum > 0" : "(accum");
  if (row.arity > 1) call += row.kind == OpKind::logical ? ", a > 0" : ", a";
  if (row.arity > 2) call += ", b";
  call += ")";
  const bool gives_truth = row.kind == OpKind::logical || row.kind == OpKind::compare;
  return Program("D = " + (gives_truth ? "where(" + call + ", 1, 0)" : call));
}

// Runs one program on triples of operands.
class EdgeTrial {
 public:
  explicit EdgeTrial(const OpRow& row)
      : program_(program_of(row)),
        machine_(program_.graph(), DType::float32),
        intervals_(program_.graph(), DType::float32) {}

  void run(const Operand& x, const Operand& a, const Operand& b) {
    const std::vector<std::string>& names = program_.graph().inputs;
    std::vector<Interval> inputs;
    for (const std::string& name : names) inputs.push_back((name == "a" ? a : b).interval);
    intervals_.run(x.interval, inputs);
    for (const float of_a : a.samples)
      for (const float of_b : b.samples) {
        for (std::size_t index = 0; index < names.size(); ++index)
          std::fill_n(machine_.input(index), x.samples.size(), names[index] == "a" ? of_a : of_b);
        std::ranges::copy(x.samples, machine_.accumulator());
        machine_.run(static_cast<int>(x.samples.size()));
        check(x, of_a, of_b);
      }
  }

 private:
  void check(const Operand& x, float of_a, float of_b) {
    const Interval& result = intervals_.output(0);
    for (std::size_t at = 0; at < x.samples.size(); ++at) {
      const auto got = static_cast<double>(machine_.output(0)[at]);
      ASSERT_TRUE(result.contains(got))
          << program_.text() << " of accum = " << x.samples[at] << ", a = " << of_a
          << ", b = " << of_b << " is " << got << ", not in [" << result.low << ", " << result.high
          << "]" << (result.may_be_nan ? " or NaN" : "");
    }
  }

  Program program_;
  Machine<float> machine_;
  IntervalMachine intervals_;
};

class IntervalEdges : public testing::TestWithParam<const char*> {};

TEST_P(IntervalEdges, hold_every_result) {
  const OpRow& row = row_of(find_op(GetParam()).value());
  const std::vector<Operand> operands = all_operands();
  const Operand unread(Interval::exactly(1));
  EdgeTrial trial(row);
  std::mt19937_64 random(tests::random_seed());
  for (const Operand& x : operands) {
    if (row.arity == 1) trial.run(x, unread, unread);
    if (row.arity == 2)
      for (const Operand& a : operands) trial.run(x, a, unread);
    if (row.arity == 3)
      for (int i = 0; i < 100; ++i)
        trial.run(x, operands[random() % operands.size()], operands[random() % operands.size()]);
    if (HasFatalFailure()) return;
  }
}

constexpr const char* names[] = {
#define GEMMERY_OP(name, ...) #name,
#include <gemmery/ops.def>
};
INSTANTIATE_TEST_SUITE_P(Every, IntervalEdges, testing::ValuesIn(names),
                         [](const auto& it) { return std::string(it.param); });

float reduce(Reduction kind, std::span<const float> values) {
  float result = kind == Reduction::max   ? -Limits::infinity()
                 : kind == Reduction::min ? Limits::infinity()
                                          : 0;
  for (const float x : values) {
    if (kind == Reduction::sum) result += x;
    if (kind == Reduction::max) result = math::max(result, x);
    if (kind == Reduction::min) result = math::min(result, x);
    if (kind == Reduction::amax) result = math::max(result, std::fabs(x));
  }
  return result;
}

// Three numbers, including NaN, in every order: each as a point, and as the interval to the next
// special number.
TEST(IntervalEdgesOfReductions, hold_every_order) {
  std::vector<float> numbers(std::begin(edges), std::end(edges));
  numbers.push_back(nan);
  const auto exact = [](float x) { return Interval::exactly(x); };
  const auto wide = [](float x) {
    const float* const next = std::ranges::upper_bound(edges, x);
    const bool is_last = std::isnan(x) || next == std::end(edges);
    return is_last ? Interval::exactly(x) : Interval{.low = x, .high = *next};
  };
  for (const Reduction kind : {Reduction::sum, Reduction::max, Reduction::min, Reduction::amax})
    for (const float x : numbers)
      for (const float y : numbers)
        for (const float z : numbers) {
          IntervalReduction of_exact(kind), of_wide(kind);
          for (const float one : {x, y, z}) {
            of_exact.add(exact(one));
            of_wide.add(wide(one));
          }
          const float order[] = {x, y, z};
          const float got = reduce(kind, order);
          ASSERT_TRUE(of_exact.result(DType::float32).contains(got))
              << static_cast<int>(kind) << " of " << x << ", " << y << ", " << z << " is " << got;
          ASSERT_TRUE(of_wide.result(DType::float32).contains(got))
              << static_cast<int>(kind) << " of " << x << ", " << y << ", " << z << " is " << got;
        }
}

// Further special numbers: those at which narrow types round, saturate and overflow.
std::vector<double> edges_of_casts() {
  std::vector<double> numbers(std::begin(edges), std::end(edges));
  for (const double turn : {0.25, 127.5, 255.5, 448.0, 464.0, 57344.0, 61440.0, 65504.0, 65520.0})
    for (const double at : {-turn, turn})
      for (const double towards : {-1e30, at, 1e30}) numbers.push_back(std::nextafter(at, towards));
  std::ranges::sort(numbers);
  return numbers;
}

void check_cast(const CastRule& rule) {
  static const std::vector<double> numbers = edges_of_casts();
  for (auto low = numbers.begin(); low != numbers.end(); ++low)
    for (auto high = low; high != numbers.end(); ++high) {
      const Interval result = cast_interval({.low = *low, .high = *high}, rule);
      for (auto at = low; at <= high; ++at) {
        ASSERT_TRUE(result.contains(cast_value(*at, rule)))
            << *at << " of [" << *low << ", " << *high << "] as " << name(rule.dtype);
      }
    }
  EXPECT_TRUE(cast_interval(Interval::exactly(nan), rule).contains(cast_value(nan, rule)));
}

TEST(IntervalEdgesOfCasts, hold_every_result) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16, DType::float8_e4m3fn,
                            DType::float8_e5m2, DType::int32, DType::int8, DType::uint8})
    for (const Rounding rounding : {Rounding::nearest_even, Rounding::toward_zero})
      for (const Overflow overflow : {Overflow::natural, Overflow::saturate})
        check_cast({dtype, rounding, overflow});
}

}  // namespace
}  // namespace gemmery::epilogue
