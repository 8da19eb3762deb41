// SPDX-License-Identifier: Apache-2.0
// The results of programs for zeros out of bounds.
#include "epilogue/zeros.hpp"

#include <gtest/gtest.h>
#include <gemmery/problem.hpp>

#include <optional>
#include <string>
#include <vector>

namespace gemmery::epilogue {
namespace {

// The value of D if the accumulator and all inputs are 0.
std::optional<double> of_zeros(const std::string& text) {
  const Program program(text);
  const Graph& graph = program.graph();
  const std::vector<bool> all(graph.inputs.size(), true);
  return evaluate_zeros(graph, all)[graph.outputs.front().value];
}

bool reduces_to_nothing(const std::string& words) {
  return reduces_zeros_to_nothing(parse_problem("gemm 8x8x8 a=bf16 " + words).problem.epilogue);
}

TEST(Zeros, go_through_functions_that_go_through_0) {
  for (const char* const text :
       {"D = accum", "D = accum + bias", "D = -accum - bias", "D = gelu(accum + bias)",
        "D = gelu_tanh(accum)", "D = 2 * silu(accum)", "D = relu(accum) * 0.5", "D = tanh(accum)",
        "D = erf(accum)", "D = hardswish(accum)", "D = leaky_relu(accum, 0.01)",
        "D = clamp(accum, -1, 1)", "D = min(accum + bias, 6)", "D = fma(accum, 3, bias)",
        "D = accum * accum", "D = round(accum)", "D = where(accum > 1, accum, bias)"})
    EXPECT_EQ(of_zeros(text), 0) << text;
}

TEST(Zeros, make_others_where_nothing_is_rounded) {
  EXPECT_EQ(of_zeros("D = max(accum, 3)"), 3);
  EXPECT_EQ(of_zeros("D = where(accum >= bias, -2, 5)"), -2);
}

TEST(Zeros, are_not_foretold_through_what_is_rounded) {
  // gelu(-50) is smaller than any double, but the device's result need not be 0.
  for (const char* const text :
       {"D = exp(accum)", "D = sigmoid(accum)", "D = softplus(accum)", "D = accum + 1",
        "D = sigmoid(accum) - 0.5", "D = 1 / accum", "D = accum / 3", "D = log(accum)",
        "D = rsqrt(accum)", "D = pow(accum, 2.5)", "D = gelu(min(accum, -50))",
        "D = cast(accum, e4m3)", "D = where(cast(max(accum, 3e9), s32) < 2147483648, accum, 1)"})
    EXPECT_EQ(of_zeros(text), std::nullopt) << text;
}

TEST(Zeros, add_nothing_to_sums_and_to_the_largest_magnitude) {
  EXPECT_TRUE(reduces_to_nothing(
      "epilogue=\"D = gelu(accum + bias); peak = amax(D)\" bias=bf16[n] peak=f32[1]"));
  EXPECT_TRUE(
      reduces_to_nothing("epilogue=\"D = accum + bias; s = sum(D * D)\" bias=f32[l,n] s=f32[m]"));
  EXPECT_TRUE(reduces_to_nothing("epilogue=\"D = exp(accum); peak = amax(accum)\" peak=f32[1]"));
  EXPECT_TRUE(reduces_to_nothing("epilogue=\"D = exp(accum + row)\" row=f32[m]"));
  for (const char* const words :
       {"epilogue=\"D = accum; top = max(D)\" top=f32[1]",
        "epilogue=\"D = accum; low = min(D)\" low=f32[1]",
        "epilogue=\"D = accum; s = sum(exp(accum))\" s=f32[1]",
        "epilogue=\"D = accum; s = sum(D); low = min(D)\" s=f32[1] low=f32[1]"})
    EXPECT_FALSE(reduces_to_nothing(words)) << words;
}

TEST(Zeros, are_the_elements_of_an_addend_and_of_nothing_else_that_is_read) {
  const auto words = [](const char* program, const char* form) {
    return std::string("epilogue=\"") + program + "; peak = amax(D)\" peak=f32[1] t=" + form;
  };
  EXPECT_TRUE(reduces_to_nothing(words("D = accum + t", "f32[n]")));
  EXPECT_TRUE(reduces_to_nothing(words("D = relu(t + accum)", "bf16[l,n]")));
  EXPECT_FALSE(reduces_to_nothing(words("D = accum + t", "0.5")));  // a number of the launch
  EXPECT_FALSE(reduces_to_nothing(words("D = 2 * accum + t", "f32[n]")));
  EXPECT_FALSE(reduces_to_nothing(words("D = (accum + t) * t", "f32[n]")));
  EXPECT_FALSE(reduces_to_nothing(words("D = accum * t", "f32[n]")));  // 0 * inf
}

}  // namespace
}  // namespace gemmery::epilogue
