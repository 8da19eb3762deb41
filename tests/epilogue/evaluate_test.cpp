// SPDX-License-Identifier: Apache-2.0
// Programs evaluated in blocks and in intervals: blocks compute the program; an interval contains
// every result that a computation of it may give, and no more than necessary.
#include "epilogue/evaluate.hpp"

#include <gtest/gtest.h>
#include <gemmery/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "core/number.hpp"
#include "epilogue/evaluate_interval.hpp"
#include "tests/epilogue/random_expression.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::epilogue {
namespace {

using tests::Drawn;
using tests::operand_names;
using tests::RandomExpressions;
using tests::Values;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

bool is_same(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

// The values that the graph reads, from values in the order of tests::operand_names.
std::vector<double> inputs_of(const Graph& graph, const Values& values) {
  std::vector<double> inputs;
  for (const std::string& name : graph.inputs)
    for (std::size_t at = 0; at < operand_names.size(); ++at)
      if (name == operand_names[at]) inputs.push_back(values[1 + at]);
  return inputs;
}

double draw_value(std::mt19937_64& random) {
  constexpr std::array<double, 8> specials{0, -0.0, 1, -1, 3, infinity, -infinity, nan};
  if (random() % 8 == 0) return specials[random() % specials.size()];
  return std::normal_distribution<double>(0, 3)(random);
}

TEST(Machine, computes_what_is_written_for_every_place_of_a_block) {
  std::mt19937_64 random(gemmery::tests::random_seed());
  const int programs = std::getenv("GEMMERY_SOAK") != nullptr ? 2000 : 100;
  for (int i = 0; i < programs; ++i) {
    RandomExpressions expressions(random());
    const Drawn drawn = expressions.draw(1 + random() % 40);
    const Expression& last = drawn.numbers.back();
    const Program program{{"D", last}, {"other", drawn.numbers[drawn.numbers.size() / 2]}};
    const Graph& graph = program.graph();
    Machine<double> machine(graph, DType::float64);
    std::vector<Values> places(block_length);
    for (int at = 0; at < block_length; ++at) {
      Values& values = places[static_cast<std::size_t>(at)];
      std::ranges::generate(values, [&] { return draw_value(random); });
      machine.accumulator()[at] = values[0];
      const std::vector<double> inputs = inputs_of(graph, values);
      for (std::size_t input = 0; input < inputs.size(); ++input)
        machine.input(input)[at] = inputs[input];
    }
    machine.run(block_length);
    for (int at = 0; at < block_length; ++at) {
      const double want =
          tests::evaluate_as_written(*last.value(), places[static_cast<std::size_t>(at)]);
      const double got = machine.output(0)[at];
      ASSERT_TRUE(is_same(got, want)) << program.text() << ": " << got << " is not " << want;
    }
  }
}

TEST(Machine, of_doubles_overflows_where_float32_does) {
  const Program program{{"D", accum() * accum()}};
  Machine<double> machine(program.graph(), DType::float32);
  machine.accumulator()[0] = 1e30;
  machine.run(1);
  EXPECT_EQ(machine.output(0)[0], infinity);
}

TEST(Machine, rounds_constants_and_casts_to_the_compute_type) {
  const Program program{{"D", accum() + 0.1}, {"whole", cast(accum(), DType::int32)}};
  Machine<double> machine(program.graph(), DType::float32);
  machine.accumulator()[0] = 0;
  machine.accumulator()[1] = 1e10;
  machine.run(2);
  EXPECT_EQ(machine.output(0)[0], static_cast<double>(0.1F));
  EXPECT_EQ(machine.output(1)[1], 2147483648.0);
}

// --- casts ---

struct CastRow {
  double value;
  CastRule rule;
  double result;
};

TEST(Cast, rounds_and_saturates_as_it_says) {
  constexpr auto toward_zero = Rounding::toward_zero;
  constexpr auto saturate = Overflow::saturate;
  const CastRow rows[] = {{1.00390625, {.dtype = DType::bfloat16}, 1},
                          {1.01171875, {.dtype = DType::bfloat16}, 1.015625},
                          {1.01171875, {DType::bfloat16, toward_zero}, 1.0078125},
                          {-1.01171875, {DType::bfloat16, toward_zero}, -1.0078125},
                          {1e6, {.dtype = DType::float16}, infinity},
                          {1e6, {DType::float16, toward_zero}, 65504},
                          {infinity, {DType::float16, toward_zero}, infinity},
                          {-1e6, {.dtype = DType::float16, .overflow = saturate}, -65504},
                          {infinity, {.dtype = DType::float16, .overflow = saturate}, 65504},
                          {nan, {.dtype = DType::float16, .overflow = saturate}, nan},
                          {464, {.dtype = DType::float8_e4m3fn}, 448},
                          {465, {.dtype = DType::float8_e4m3fn}, nan},
                          {465, {DType::float8_e4m3fn, toward_zero}, 448},
                          {-465, {.dtype = DType::float8_e4m3fn, .overflow = saturate}, -448},
                          {0x1p-24, {.dtype = DType::float16}, 0x1p-24},
                          {0x1p-26, {.dtype = DType::float16}, 0},
                          {0x1.8p-24, {DType::float16, toward_zero}, 0x1p-24},
                          {2.5, {.dtype = DType::int8}, 2},
                          {3.5, {.dtype = DType::int8}, 4},
                          {-2.7, {DType::int8, toward_zero}, -2},
                          {200, {.dtype = DType::int8}, 127},
                          {-1, {.dtype = DType::uint8}, 0},
                          {nan, {.dtype = DType::int8}, 0},
                          {-infinity, {.dtype = DType::int32}, -2147483648.0}};
  for (const CastRow& row : rows) {
    const double got = cast_value(row.value, row.rule);
    EXPECT_TRUE(is_same(got, row.result))
        << row.value << " as " << name(row.rule.dtype) << " gave " << got;
  }
}

TEST(Cast, to_what_is_no_number_by_itself_is_refused) {
  for (const char* const type : {"e8m0", "e2m1"})
    EXPECT_THROW(Program(std::string("D = cast(accum, ") + type + ")"), Error) << type;
}

// --- intervals ---

Interval run_interval(const Program& program, const Interval& x, DType compute = DType::float32) {
  IntervalMachine machine(program.graph(), compute);
  machine.run(x, {});
  return machine.output(0);
}
Interval run_interval(const Expression& value, const Interval& x) {
  return run_interval(Program{{"D", value}}, x);
}

// sigmoid(20) may be rounded to 1, which is not an end of its interval.
TEST(Interval, of_a_power_holds_1_where_a_base_of_1_or_an_exponent_of_0_may_stand_beside_nan) {
  const Interval base =
      run_interval(Program(std::string_view("D = sigmoid(accum) ** nan")), Interval::exactly(20));
  EXPECT_TRUE(base.contains(1) && base.may_be_nan);
  const Program power(std::string_view("D = nan ** accum"));
  const Interval exponent = run_interval(power, {.low = -1, .high = 2});
  EXPECT_TRUE(exponent.contains(1) && exponent.may_be_nan);
  EXPECT_FALSE(run_interval(power, {.low = 0.5, .high = 2}).has_numbers);
}

// tanh(-0) - 3 is -3 within an error, so no end of the exponent is odd.
TEST(Interval, of_a_power_holds_minus_infinity_where_a_zero_may_be_negative) {
  const Expression below_zero = tanh(accum()) - 3;
  const Interval zero =
      run_interval(pow(cast(accum(), DType::float8_e4m3fn), below_zero), Interval::exactly(-1e-30));
  EXPECT_TRUE(zero.contains(-infinity) && zero.contains(infinity));
  EXPECT_FALSE(zero.may_be_nan);
  const Interval above_zero = run_interval(
      pow(cast(accum(), DType::float8_e4m3fn), tanh(accum()) + 3), Interval::exactly(-1e-30));
  EXPECT_TRUE(above_zero.contains(0) && !above_zero.contains(-1e-30));
}

TEST(Interval, holds_what_float32_computes_from_anywhere_in_it) {
  std::mt19937_64 random(gemmery::tests::random_seed());
  const int programs = std::getenv("GEMMERY_SOAK") != nullptr ? 5000 : 200;
  constexpr int samples = 64;
  std::int64_t narrow = 0, all = 0;
  for (int i = 0; i < programs; ++i) {
    RandomExpressions expressions(random());
    const Drawn drawn = expressions.draw(1 + random() % 12);
    const Program program{{"D", drawn.numbers.back()}};
    const Graph& graph = program.graph();
    Machine<float> machine(graph, DType::float32);
    IntervalMachine intervals(graph, DType::float32);
    Values values;
    std::ranges::generate(values, [&] { return static_cast<float>(draw_value(random)); });
    const double spread = std::ldexp(1.0, -static_cast<int>(random() % 24));
    const Interval sum = Interval::around(values[0], spread);
    const std::vector<double> inputs = inputs_of(graph, values);
    std::vector<Interval> exact;
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      exact.push_back(Interval::exactly(inputs[input]));
      std::fill_n(machine.input(input), samples, static_cast<float>(inputs[input]));
    }
    for (int at = 0; at < samples; ++at) {
      const double share = static_cast<double>(random() % 4097) / 4096;
      const double x = std::isfinite(values[0]) ? values[0] + spread * (2 * share - 1) : values[0];
      machine.accumulator()[at] = static_cast<float>(x);
      // The rounded result may be outside of the interval.
      if (!sum.contains(machine.accumulator()[at]))
        machine.accumulator()[at] = static_cast<float>(values[0]);
    }
    machine.run(samples);
    intervals.run(sum, exact);
    const Interval& result = intervals.output(0);
    for (int at = 0; at < samples; ++at) {
      const double got = static_cast<double>(machine.output(0)[at]);
      ASSERT_TRUE(result.contains(got))
          << program.text() << " of " << machine.accumulator()[at] << " is " << got << ", not in ["
          << result.low << ", " << result.high << "]" << (result.may_be_nan ? " or NaN" : "")
          << ", values " << values[1] << " " << values[2] << " " << values[3];
    }
    ++all;
    narrow += result.high - result.low < infinity && !(result.may_be_nan && result.has_numbers);
  }
  EXPECT_GT(3 * narrow, all) << "most intervals say nothing";
}

TEST(Interval, of_an_exact_operation_on_a_number_is_a_number) {
  for (const Expression& value : {relu(accum()), -accum(), abs(accum()), max(accum(), 2.0),
                                  clamp(accum(), -1.0, 1.0), where(accum() > 0, 1, 2)})
    EXPECT_TRUE(run_interval(value, Interval::exactly(1.5)).is_one_number());
}

TEST(Interval, of_a_sum_is_as_wide_as_its_rounding) {
  const Interval result = run_interval(accum() + 1, Interval::exactly(2));
  EXPECT_TRUE(result.contains(3 + 3 * 0x1p-24));
  EXPECT_FALSE(result.contains(3 + 3 * 0x1p-22));
}

TEST(Interval, holds_both_sides_of_a_jump) {
  const Interval around_one{.low = 0.75, .high = 1.25};
  const Interval floors = run_interval(floor(accum()), around_one);
  EXPECT_EQ(floors.low, 0);
  EXPECT_EQ(floors.high, 1);
  const Interval chosen = run_interval(where(accum() > 1, 10, 20), around_one);
  EXPECT_TRUE(chosen.contains(10) && chosen.contains(20));
  const Interval certain = run_interval(where(accum() > 2, 10, 20), around_one);
  EXPECT_TRUE(certain.is_one_number());
  EXPECT_EQ(certain.low, 20);
}

TEST(Interval, holds_the_minimum_between_its_ends) {
  EXPECT_LE(run_interval(gelu(accum()), {.low = -2, .high = 1}).low, -0.16997);
  EXPECT_LE(run_interval(silu(accum()), {.low = -9, .high = 0}).low, -0.27846);
  EXPECT_EQ(run_interval(abs(accum()), {.low = -2, .high = 1}).low, 0);
  EXPECT_EQ(run_interval(accum() * accum(), {.low = -2, .high = 1}).high >= 4, true);
}

TEST(Interval, knows_where_nan_is_possible_and_where_it_is_certain) {
  const Interval across{.low = -1, .high = 1};
  EXPECT_TRUE(run_interval(sqrt(accum()), across).may_be_nan);
  EXPECT_TRUE(run_interval(sqrt(accum()), across).has_numbers);
  EXPECT_FALSE(run_interval(sqrt(accum()), {.low = -3, .high = -1}).has_numbers);
  EXPECT_FALSE(run_interval(accum() + 1, Interval::exactly(nan)).has_numbers);
  EXPECT_TRUE(run_interval(where(accum() > 0, 1, 2), Interval::exactly(nan)).is_one_number());
  EXPECT_FALSE(run_interval(accum() - accum(), Interval::exactly(infinity)).has_numbers);
}

TEST(Interval, a_quotient_by_what_may_be_zero_is_unbounded) {
  const Interval result = run_interval(1 / accum(), {.low = -1, .high = 2});
  EXPECT_EQ(result.low, -infinity);
  EXPECT_EQ(result.high, infinity);
}

TEST(Interval, overflow_of_the_compute_type_is_infinite) {
  EXPECT_EQ(run_interval(accum() * accum(), Interval::exactly(1e30)).low, infinity);
  EXPECT_LT(
      run_interval(Program{{"D", accum() * accum()}}, Interval::exactly(1e30), DType::float64).high,
      1.1e60);
}

TEST(Interval, narrowing_is_monotone_and_knows_types_without_infinity) {
  const Interval stored = stored_interval({.low = 1.0, .high = 1.0001}, DType::bfloat16);
  EXPECT_TRUE(stored.is_one_number());
  const Interval beyond = stored_interval({.low = 400, .high = 500}, DType::float8_e4m3fn);
  EXPECT_TRUE(beyond.may_be_nan);
  EXPECT_EQ(beyond.high, 448);
  EXPECT_FALSE(stored_interval({.low = 500, .high = 600}, DType::float8_e4m3fn).has_numbers);
  EXPECT_TRUE(stored_interval(Interval::exactly(nan), DType::int8).contains(0));
}

// --- reductions ---

TEST(IntervalReduction, holds_sums_in_any_order) {
  std::mt19937_64 random(gemmery::tests::random_seed());
  std::normal_distribution<float> normal;
  std::vector<float> values(1000);
  std::ranges::generate(values, [&] { return normal(random); });
  IntervalReduction reduction(Reduction::sum);
  for (const float x : values) reduction.add(Interval::exactly(x));
  const Interval result = reduction.result(DType::float32);
  for (int order = 0; order < 20; ++order) {
    std::ranges::shuffle(values, random);
    float sum = 0;
    for (std::size_t part = 0; part < values.size(); part += 100) {
      float partial = 0;
      for (std::size_t at = part; at < part + 100; ++at) partial += values[at];
      sum += partial;
    }
    EXPECT_TRUE(result.contains(sum));
  }
  EXPECT_LT(result.high - result.low, 0.1);
}

TEST(IntervalReduction, of_extremes_takes_the_ends) {
  const std::vector<Interval> values{{.low = -5, .high = -4}, {.low = 1, .high = 3}};
  const auto reduce = [&](Reduction kind) {
    IntervalReduction reduction(kind);
    for (const Interval& x : values) reduction.add(x);
    return reduction.result(DType::float32);
  };
  EXPECT_EQ(reduce(Reduction::max).low, 1);
  EXPECT_EQ(reduce(Reduction::max).high, 3);
  EXPECT_EQ(reduce(Reduction::min).high, -4);
  EXPECT_EQ(reduce(Reduction::amax).low, 4);
  EXPECT_EQ(reduce(Reduction::amax).high, 5);
}

TEST(IntervalReduction, infinities_of_both_signs_make_nan) {
  IntervalReduction sum(Reduction::sum);
  sum.add(Interval::exactly(infinity));
  EXPECT_TRUE(sum.result(DType::float32).is_one_number());
  sum.add(Interval::exactly(-infinity));
  EXPECT_FALSE(sum.result(DType::float32).has_numbers);
}

}  // namespace
}  // namespace gemmery::epilogue
