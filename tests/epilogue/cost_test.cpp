// SPDX-License-Identifier: Apache-2.0
// Discovery's estimate of a program's cost.
#include "epilogue/cost.hpp"

#include <gtest/gtest.h>

#include <string>

#include "epilogue/graph.hpp"

namespace gemmery::epilogue {
namespace {

double cost_of(const std::string& text) { return count_instructions(Program(text).graph()); }

TEST(ProgramCost, what_stands_as_it_is_costs_nothing) {
  EXPECT_EQ(cost_of("D = accum"), 0);
  EXPECT_EQ(cost_of("D = accum; peak = amax(D)"), 0);
}

TEST(ProgramCost, an_operation_costs_at_least_what_a_simpler_one_costs) {
  EXPECT_GT(cost_of("D = accum + bias"), 0);
  EXPECT_GT(cost_of("D = gelu(accum)"), cost_of("D = relu(accum)"));
  EXPECT_GT(cost_of("D = gelu(accum + bias)"), cost_of("D = gelu(accum)"));
  EXPECT_GT(cost_of("D = cast(accum, e4m3)"), cost_of("D = cast(accum, bf16)"));
}

TEST(ProgramCost, a_value_is_computed_once_however_often_it_is_used) {
  const double once = cost_of("D = silu(accum)");
  EXPECT_EQ(cost_of("D = silu(accum); copy = silu(accum)"), once);
  EXPECT_EQ(cost_of("D = silu(accum) + silu(accum)"), once + 1);
}

TEST(ProgramCost, every_operation_has_one) {
  constexpr Op ops[] = {
#define GEMMERY_OP(name, ...) Op::name,
#include <gemmery/ops.def>
  };
  for (const Op op : ops) EXPECT_GE(count_instructions(op), 0) << row_of(op).name;
}

}  // namespace
}  // namespace gemmery::epilogue
