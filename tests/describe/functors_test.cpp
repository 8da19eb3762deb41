// SPDX-License-Identifier: Apache-2.0
// The functors on an emulated device, with the steps that their names mean.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/number.hpp"
#include "tests/describe/described_gemm.hpp"
#include "tests/support/no_disk_cache.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery::describe::tests {
namespace {

using DescribeFunctors = gemmery::tests::WithNvrtc;
using enum Element;
using epilogue::Activation;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST_F(DescribeFunctors, row_37_linear_combination) {
  for (const Element cd : {float32, float16}) {
    const Sketch sketch{.cd = cd};
    for (const auto& [alpha, beta] :
         {std::pair{1.0, 0.0}, {1.0, 2.0}, {2.0, 2.0}, {0.5, -1.5}, {0.0, 1.0}})
      expect_exact(sketch, {{72, 56, 40}}, {.output_op = {.alpha = alpha, .beta = beta}});
  }
}

TEST_F(DescribeFunctors, row_37_without_beta_nothing_of_c_is_read) {
  for (const EpilogueFunctor& functor :
       {LinearCombination(float32, 4), LinearCombinationClamp(float32, 4),
        LinearCombinationGeneric(Activation::relu, float32, 4)}) {
    for (const bool without_c : {false, true}) {
      DescribedGemm gemm(operation_of({.functor = functor}), {72, 56, 40},
                         {.output_op = {.alpha = 0.5}});
      for (std::int64_t row = 0; row < 72; ++row)
        for (std::int64_t column = 0; column < 56; ++column) gemm.c.set(0, row, column, nan);
      gemm.without_c = without_c;
      gemm.run();
      EXPECT_EQ(gemm.first_difference([&](double sum, double) {
        return functor.kind == EpilogueFunctor::Kind::linear_combination_generic
                   ? std::max(0.5 * sum, 0.0)
                   : 0.5 * sum;
      }),
                "");
    }
  }
}

Sketch of_int8(Element cd, const EpilogueFunctor& functor) {
  return {.tile = {64, 64, 64},
          .instruction = {16, 8, 32},
          .ab = int8,
          .accumulator = int32,
          .cd = cd,
          .functor = functor};
}

TEST_F(DescribeFunctors, row_38_clamp_rounds_half_to_even) {
  DescribedGemm gemm(operation_of(of_int8(int8, LinearCombinationClamp(int8, 16, int32, float32))),
                     {16, 16, 16}, {.output_op = {.alpha = 0.5}});
  gemm.a.fill_byte(0);
  gemm.b.fill_byte(0);
  const std::pair<int, double> rows[] = {{255, 127}, {600, 127}, {-600, -128}, {5, 2},
                                         {7, 4},     {-5, -2},   {-7, -4},     {254, 127}};
  for (std::int64_t row = 0; row < 8; ++row) {
    for (std::int64_t k = 0, left = rows[row].first; left != 0; ++k) {
      const std::int64_t part = std::clamp<std::int64_t>(left, -127, 127);
      gemm.a.set(0, row, k, static_cast<double>(part));
      left -= part;
    }
  }
  for (std::int64_t k = 0; k < 16; ++k) gemm.b.set(0, k, 3, 1);
  gemm.run();
  for (std::int64_t row = 0; row < 8; ++row) EXPECT_EQ(gemm.d.at(0, row, 3), rows[row].second);
}

TEST_F(DescribeFunctors, row_38_int32_of_f32_saturates) {
  DescribedGemm gemm(operation_of(of_int8(int32, LinearCombinationClamp(int32, 4, int32, float32))),
                     {16, 16, 32}, {.output_op = {.alpha = 65536}});
  gemm.fill(38, 100, 127);  // sums above 320,000
  gemm.run();
  for (std::int64_t at = 0; at < 16; ++at) EXPECT_EQ(gemm.d.at(0, at, at), 2147483647.0);
}

TEST_F(DescribeFunctors, row_39_fast_clamp_is_the_clamp_for_any_k) {
  for (const std::int64_t k : {32, 256, 272, 512}) {
    const GemmOptions options{.output_op = {.alpha = 1.0 / 1024, .beta = 1}};
    DescribedGemm fast(operation_of(of_int8(int8, FastLinearCombinationClamp(int8, 16))),
                       {64, 48, k}, options);
    DescribedGemm clamp(
        operation_of(of_int8(int8, LinearCombinationClamp(int8, 16, int32, float32))), {64, 48, k},
        options);
    for (DescribedGemm* gemm : {&fast, &clamp}) {
      gemm->fill(39, -128, 127);
      gemm->run();
    }
    EXPECT_EQ(fast.d.memory(), clamp.d.memory());
    EXPECT_EQ(fast.first_difference([](double sum, double c) {
      const auto value = static_cast<float>(std::fma(1.0 / 1024, sum, c));
      return std::clamp(std::nearbyint(static_cast<double>(value)), -128.0, 127.0);
    }),
              "");
  }
}

TEST_F(DescribeFunctors, row_39_accumulators_of_2_to_the_22) {
  DescribedGemm gemm(operation_of(of_int8(int8, FastLinearCombinationClamp(int8, 16))),
                     {16, 16, 256}, {.output_op = {.alpha = std::ldexp(1.0, -16)}});
  gemm.fill(39, -128, -128);  // sums of exactly 2^22
  gemm.run();
  EXPECT_EQ(gemm.d.at(0, 2, 5), 64);
}

// --- activations --------------------------------------------------------------------------------

// D of a product whose accumulators are the given values.
std::vector<double> activated(Activation activation, const std::vector<double>& values,
                              std::vector<double> arguments = {}) {
  DescribedGemm gemm(
      operation_of({.instruction = {16, 8, 8},
                    .ab = float32,
                    .functor = LinearCombinationGeneric(activation, float32, 4)}),
      {16, 16, 4}, {.output_op = {.alpha = 1, .beta = 1, .activation_args = std::move(arguments)}});
  gemm.a.fill_byte(0);
  gemm.c.fill_byte(0);
  for (std::size_t i = 0; i < values.size(); ++i)
    gemm.c.set(0, static_cast<std::int64_t>(i), 5, values[i]);
  gemm.run();
  std::vector<double> results;
  for (std::size_t i = 0; i < values.size(); ++i)
    results.push_back(gemm.d.at(0, static_cast<std::int64_t>(i), 5));
  return results;
}

void expect_near(Activation activation, const std::function<double(double)>& exact, double relative,
                 double absolute) {
  const std::vector<double> values{-100, -7.5, -3, -1.25, -0.5, -1e-3, 0,
                                   1e-3, 0.5,  1,  2.7,   3,    7.5,   100};
  const auto got = activated(activation, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double wanted = exact(number::rounded_to(DType::float32, {values[i], 0}));
    EXPECT_NEAR(got[i], wanted, relative * std::abs(wanted) + absolute) << values[i];
  }
}

TEST_F(DescribeFunctors, row_40_relu_keeps_nan) {
  const auto got = activated(Activation::relu, {-2, -0.0, 0, 1.5, nan});
  EXPECT_EQ(std::vector<double>(got.begin(), got.begin() + 4), (std::vector<double>{0, 0, 0, 1.5}));
  EXPECT_TRUE(std::isnan(got[4]));
}

TEST_F(DescribeFunctors, row_41_leaky_relu_takes_its_slope) {
  for (const double slope : {0.2, 0.01, 0.0}) {
    const auto got = activated(Activation::leaky_relu, {-2, 3}, {slope});
    EXPECT_EQ(got[0], static_cast<double>(-2.0F * static_cast<float>(slope)));
    EXPECT_EQ(got[1], 3);
  }
  EXPECT_EQ(activated(Activation::leaky_relu, {-2})[0], static_cast<double>(-2.0F * 0.2F));
}

TEST_F(DescribeFunctors, row_42_tanh) {
  expect_near(
      Activation::tanh, [](double x) { return std::tanh(x); }, 0, 2e-7);
}

TEST_F(DescribeFunctors, row_42_tanh_of_f64) {
  DescribedGemm gemm(
      operation_of({.tile = {64, 64, 16},
                    .instruction = {8, 8, 4},
                    .ab = float64,
                    .accumulator = float64,
                    .cd = float64,
                    .functor = LinearCombinationGeneric(Activation::tanh, float64, 2)}),
      {32, 32, 16}, {.output_op = {.alpha = 1.0 / 64}});
  gemm.run();
  for (std::int64_t at = 0; at < 32; ++at)
    EXPECT_NEAR(gemm.d.at(0, at, 31 - at), std::tanh(gemm.accumulated(0, at, 31 - at) / 64), 1e-14);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST_F(DescribeFunctors, row_43_sigmoid) {
  expect_near(Activation::sigmoid, sigmoid, 1e-6, 1e-38);
  const auto ends = activated(Activation::sigmoid, {-100, 100});
  EXPECT_NEAR(ends[0], 0, 1e-37);
  EXPECT_EQ(ends[1], 1);
}

TEST_F(DescribeFunctors, row_44_silu) {
  expect_near(
      Activation::silu, [](double x) { return x * sigmoid(x); }, 1e-6, 1e-35);
  EXPECT_TRUE(std::isfinite(activated(Activation::silu, {-100})[0]));
}

TEST_F(DescribeFunctors, row_45_hardswish) {
  expect_near(
      Activation::hardswish, [](double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; },
      1e-6, 0);
  EXPECT_EQ(activated(Activation::hardswish, {-3, 0, 3}), (std::vector<double>{0, 0, 3}));
}

TEST_F(DescribeFunctors, row_46_gelu_is_the_erf_form) {
  const auto gelu = [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); };
  expect_near(Activation::gelu, gelu, 1e-6, 1e-6);
  const auto got = activated(Activation::gelu, {1, -3, 2.7});
  EXPECT_NEAR(got[0], 0.8413447, 1e-6);
  EXPECT_NEAR(got[1], -0.0040497, 1e-6);
  const double by_tanh =
      0.5 * 2.7 * (1 + std::tanh(0.7978845608 * (2.7 + 0.044715 * 2.7 * 2.7 * 2.7)));
  EXPECT_GT(std::abs(got[2] - by_tanh), 4e-4);
}

// --- visitors -----------------------------------------------------------------------------------

TEST_F(DescribeFunctors, row_48_a_visitor_stores_what_its_program_says) {
  using Kind = VisitorOperand::Kind;
  const EpilogueFunctor visitor = EpilogueVisitTree(
      epilogue::Program("D = alpha * leaky_relu(accum, 0.2) + bias; T = accum + c; R = sum(accum)"),
      {{"alpha", Kind::scalar},
       {"bias", Kind::row},
       {"c", Kind::tensor},
       {"T", Kind::tensor},
       {"R", Kind::column}},
      float32, 4);
  const GemmOperationUniversal operation = operation_of({.functor = visitor});
  const Device device = test_device();
  const GemmCoord size{72, 56, 40};
  DescribedGemm gemm(operation, size);
  gemm.upload();
  const Stream stream = gemm.stream();
  const Buffer t(72 * 56 * 4, stream);
  const Buffer r(72 * 4, stream);
  fill(t.data(), 0xa5, t.bytes(), stream);
  fill(r.data(), 0xa5, r.bytes(), stream);
  const auto* const c = gemm.c_on_device();
  DescribedGemm with_operands(
      operation, size,
      {.output_op = {.operands = {{"alpha", 2.0},
                                  {"bias", Tensor(c, DType::float32, {1, 56}, device)},
                                  {"c", Tensor(c, DType::float32, {72, 56}, device)},
                                  {"T", Tensor(t.data(), DType::float32, {72, 56}, device)},
                                  {"R", Tensor(r.data(), DType::float32, {72, 1}, device)}}}});
  with_operands.upload();
  const GemmArguments arguments = with_operands.arguments();
  EXPECT_EQ(arguments.kernels().front(), static_cast<const Kernel&>(operation));
  with_operands.launch(arguments);
  with_operands.download();
  std::vector<float> stored(72 * 56);
  std::vector<float> sums(72);
  copy(stored.data(), Device::cpu(), t.data(), device, t.bytes(), stream);
  copy(sums.data(), Device::cpu(), r.data(), device, r.bytes(), stream);
  synchronize(stream);
  for (std::int64_t row = 0; row < 72; ++row) {
    double sum = 0;
    for (std::int64_t column = 0; column < 56; ++column) {
      const double accumulated = with_operands.accumulated(0, row, column);
      sum += accumulated;
      const float leaky = static_cast<float>(accumulated) * (accumulated > 0 ? 1.0F : 0.2F);
      EXPECT_EQ(with_operands.d.at(0, row, column),
                static_cast<double>(2.0F * leaky + static_cast<float>(gemm.c.at(0, 0, column))));
      EXPECT_EQ(stored[static_cast<std::size_t>(row * 56 + column)],
                static_cast<float>(accumulated + gemm.c.at(0, row, column)));
    }
    EXPECT_EQ(sums[static_cast<std::size_t>(row)], static_cast<float>(sum));
  }
}

}  // namespace
}  // namespace gemmery::describe::tests
