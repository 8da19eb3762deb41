// SPDX-License-Identifier: Apache-2.0
// The functors' steps, limits and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>

#include <gemmery/error.hpp>
#include <gemmery/functors.hpp>

#include "epilogue/evaluate.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::epilogue {
namespace {

using testing::HasSubstr;
using Numbers = std::map<std::string, double>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// D before it is rounded to out's type; programs over floating sums run in float.
template <class T>
double evaluate(const Program& program, double sum, const Numbers& operands) {
  Machine<T> machine(program.graph(), std::is_same_v<T, float> ? DType::float32 : DType::float64);
  *machine.accumulator() = static_cast<T>(sum);
  for (std::size_t input = 0; input < program.inputs().size(); ++input)
    *machine.input(input) = static_cast<T>(operands.at(program.inputs()[input]));
  machine.run(1);
  return static_cast<double>(*machine.output(0));
}

double as_int8(double value) {
  return cast_value(value, {DType::int8, Rounding::nearest_even, Overflow::natural});
}

template <class Make>
std::string message_of(Make make) {
  try {
    make();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Functors, linear_combination_is_a_product_and_a_fused_sum) {
  const Program program = linear_combination({});
  std::mt19937_64 random(gemmery::tests::random_seed());
  std::normal_distribution<float> normal;
  for (int sample = 0; sample < 1000; ++sample) {
    const float sum = normal(random);
    const float c = normal(random);
    for (const auto& [alpha, beta] :
         {std::pair{1.F, 0.F}, {1.F, 2.F}, {2.F, 2.F}, {0.5F, -1.5F}, {0.F, 1.F}, {0.3F, 0.7F}})
      ASSERT_EQ(evaluate<float>(program, sum, {{"alpha", alpha}, {"beta", beta}, {"C", c}}),
                std::fma(alpha, sum, beta * c));
  }
}

TEST(Functors, without_C_nothing_of_it_is_read) {
  const Program program = linear_combination({.reads_c = false});
  EXPECT_THAT(program.inputs(), testing::ElementsAre("alpha"));
  EXPECT_EQ(evaluate<float>(program, 3, {{"alpha", 2}}), 6);
}

TEST(Functors, int8_results_are_rounded_to_even_and_held) {
  const Program program =
      linear_combination_clamp({.out = DType::int8, .accumulator = DType::int32, .reads_c = false});
  for (const auto& [sum, expected] : {std::pair{255, 127},
                                      {600, 127},
                                      {-600, -128},
                                      {5, 2},
                                      {7, 4},
                                      {-5, -2},
                                      {0, 0},
                                      {256, 127}})
    EXPECT_EQ(as_int8(evaluate<double>(program, sum, {{"alpha", 0.5}})), expected) << sum;
}

TEST(Functors, the_fast_clamp_is_the_clamp_beyond_its_old_range_too) {
  const Program fast = fast_linear_combination_clamp(DType::int8, 4);
  EXPECT_EQ(fast, linear_combination_clamp(
                      {.out = DType::int8, .count = 4, .accumulator = DType::int32}));
  const Numbers operands{{"alpha", 1.0 / 65536}, {"beta", 1}, {"C", 3}};
  for (const double sum : {4194304.0, -4194304.0, 4194303.0, 2147483647.0})
    EXPECT_EQ(as_int8(evaluate<double>(fast, sum, operands)),
              as_int8(std::nearbyint(sum / 65536 + 3)))
        << sum;
}

TEST(Functors, sums_beyond_two_to_the_24_are_rounded_to_float32_first) {
  const Program program =
      linear_combination({.out = DType::int32, .accumulator = DType::int32, .reads_c = false});
  EXPECT_EQ(evaluate<double>(program, 16777217, {{"alpha", 1}}), 16777216);
  const Program exact = linear_combination({.out = DType::int32,
                                            .accumulator = DType::int32,
                                            .compute = DType::float64,
                                            .reads_c = false});
  EXPECT_EQ(evaluate<double>(exact, 16777217, {{"alpha", 1}}), 16777217);
}

TEST(Functors, floats_are_held_between_their_largest_numbers) {
  const auto largest = [](DType out) {
    return evaluate<float>(linear_combination_clamp({.out = out, .reads_c = false}), 1e38,
                           {{"alpha", 1}});
  };
  EXPECT_EQ(largest(DType::float16), 65504);
  EXPECT_EQ(largest(DType::float8_e4m3fn), 448);
  EXPECT_EQ(largest(DType::float8_e5m2), 57344);
  EXPECT_EQ(largest(DType::float4_e2m1fn), 6);
  EXPECT_EQ(largest(DType::float6_e2m3fn), 7.5);
  EXPECT_EQ(largest(DType::float6_e3m2fn), 28);
  EXPECT_TRUE(std::isnan(evaluate<float>(
      linear_combination_clamp({.out = DType::float16, .reads_c = false}), nan, {{"alpha", 1}})));
}

TEST(Functors, activations_are_those_of_their_names) {
  const auto activated = [](Activation activation, double x) {
    const Program program = linear_combination_generic(activation, {.reads_c = false});
    return evaluate<float>(program, x, {{"alpha", 1}, {"leaky_alpha", 0.2}});
  };
  EXPECT_EQ(activated(Activation::identity, -2), -2);
  EXPECT_EQ(activated(Activation::relu, -2), 0);
  EXPECT_TRUE(std::isnan(activated(Activation::relu, nan)));
  EXPECT_EQ(activated(Activation::leaky_relu, -2), static_cast<double>(-2.F * 0.2F));
  EXPECT_EQ(activated(Activation::leaky_relu, 2), 2);
  EXPECT_EQ(activated(Activation::sigmoid, 100), 1);
  EXPECT_NEAR(activated(Activation::sigmoid, -100), 0, 1e-40);
  EXPECT_EQ(activated(Activation::hardswish, -3), 0);
  EXPECT_EQ(activated(Activation::hardswish, 0), 0);
  EXPECT_EQ(activated(Activation::hardswish, 3), 3);
  EXPECT_TRUE(std::isfinite(activated(Activation::silu, -100)));
  // Published values of the formula with erf, to the given digits.
  EXPECT_NEAR(activated(Activation::gelu, 1), 0.8413447, 1e-6);
  EXPECT_NEAR(activated(Activation::gelu, -3), -0.0040497, 1e-6);
  EXPECT_NEAR(activated(Activation::tanh, 0.5), std::tanh(0.5), 2e-7);
}

TEST(Functors, refuse_types_and_counts_by_name) {
  EXPECT_THAT(message_of([] { (void)linear_combination({.compute = DType::float16}); }),
              testing::AllOf(HasSubstr("compute"), HasSubstr("float16")));
  EXPECT_THAT(message_of([] { (void)linear_combination({.compute = DType::float64}); }),
              HasSubstr("float32 for an accumulator of float32"));
  EXPECT_THAT(message_of([] { (void)linear_combination({.count = 3}); }), HasSubstr("count"));
  EXPECT_THAT(message_of([] { (void)linear_combination({.count = 8}); }), HasSubstr("16 bytes"));
  EXPECT_THAT(message_of([] { (void)fast_linear_combination_clamp(DType::int32, 4); }),
              HasSubstr("int8 or uint8"));
  EXPECT_THAT(message_of([] { (void)fast_linear_combination_clamp(DType::int8, 2); }),
              HasSubstr("multiple of 4"));
}

}  // namespace
}  // namespace gemmery::epilogue
