// SPDX-License-Identifier: Apache-2.0
// The addend that a kernel may add to the accumulators before it runs a program.
#include "epilogue/addend.hpp"

#include <gtest/gtest.h>
#include <gemmery/problem.hpp>

#include <optional>
#include <string>

namespace gemmery::epilogue {
namespace {

std::optional<std::string> added_name(const std::string& text) {
  const Program program(text);
  const Graph& graph = program.graph();
  const auto input = find_added_input(graph);
  return input ? std::optional(graph.inputs[*input]) : std::nullopt;
}

// The name of the tensor with the addend's number; empty if there is none.
std::string addend_of(const std::string& words) {
  const EpilogueId epilogue = parse_problem("gemm 8x8x8 a=bf16 " + words).problem.epilogue;
  int left = find_addend(epilogue);
  if (left < 0) return {};
  for (const EpilogueOperandRule& rule : rules_of(epilogue).operands)
    if (!rule.is_output && !rule.is_number && left-- == 0) return rule.name;
  return "none of the tensors";
}

TEST(Addend, is_what_the_program_adds_to_the_accumulator_first) {
  EXPECT_EQ(added_name("D = accum + bias"), "bias");
  EXPECT_EQ(added_name("D = gelu(bias + accum)"), "bias");
  EXPECT_EQ(added_name("D = scale * gelu(accum + bias) + rest; peak = amax(D)"), "bias");
  EXPECT_EQ(added_name("x = accum + bias; D = x * sigmoid(x)"), "bias");
}

TEST(Addend, nobody_else_reads_the_accumulator_or_it) {
  EXPECT_EQ(added_name("D = accum"), std::nullopt);
  EXPECT_EQ(added_name("D = 2 * accum + bias"), std::nullopt);
  EXPECT_EQ(added_name("D = accum - bias"), std::nullopt);
  EXPECT_EQ(added_name("D = accum + 2 * bias"), std::nullopt);
  EXPECT_EQ(added_name("D = accum + 3"), std::nullopt);
  EXPECT_EQ(added_name("D = (accum + bias) * bias"), std::nullopt);
  EXPECT_EQ(added_name("D = (accum + bias) * accum"), std::nullopt);
  EXPECT_EQ(added_name("D = accum + bias; sums = accum"), std::nullopt);
}

TEST(Addend, is_counted_among_the_tensors_that_are_read) {
  EXPECT_EQ(addend_of("epilogue=\"D = accum + bias\" bias=bf16[n]"), "bias");
  EXPECT_EQ(addend_of("epilogue=\"D = scale * row * (accum + bias)\" scale=2 row=f32[n] "
                      "bias=bf16[n]"),
            "bias");
  EXPECT_EQ(addend_of("epilogue=\"D = (accum + bias) * row * scale + rest\" scale=2 row=f32[n] "
                      "bias=bf16[n] rest=f32[m]"),
            "bias");
  EXPECT_EQ(addend_of("epilogue=\"D = row * (accum + shift)\" row=f32[n] shift=2"), "");
  EXPECT_EQ(addend_of("epilogue=\"D = row * accum\" row=f32[n]"), "");
}

}  // namespace
}  // namespace gemmery::epilogue
