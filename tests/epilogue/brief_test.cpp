// SPDX-License-Identifier: Apache-2.0
// Brief formulas: the results for which they are used, their code, and their errors in
// verification.
#include "epilogue/brief.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "epilogue/emit_cuda.hpp"
#include "epilogue/evaluate_interval.hpp"
#include "epilogue/graph.hpp"

namespace gemmery::epilogue {
namespace {

using testing::HasSubstr;
using testing::Not;

// `other` is stored element by element, `top` reduced to one value.
EpilogueId intern_with_results(std::string_view text, DType other = DType::bfloat16) {
  EpilogueRules rules{Program(text), {}};
  for (const std::string& name : rules.program.outputs())
    if (name != "D")
      rules.operands.push_back({.name = name,
                                .is_output = true,
                                .dtype = name == "other" ? other : DType::float32,
                                .varies_m = name == "other",
                                .varies_n = name == "other",
                                .adjacent = Adjacent::along_n,
                                .alignment = 4});
  return intern(rules);
}

bool is_taken(EpilogueId epilogue, DType d) {
  return takes_brief_formulas(epilogue, d, DType::float32);
}

TEST(BriefFormulas, are_taken_where_results_have_at_most_8_significant_bits) {
  const EpilogueId epilogue = intern_with_results("D = gelu(accum)");
  for (const DType d : {DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2})
    EXPECT_TRUE(is_taken(epilogue, d)) << name(d);
  for (const DType d : {DType::float16, DType::float32, DType::float64, DType::int8, DType::int32})
    EXPECT_FALSE(is_taken(epilogue, d)) << name(d);
}

TEST(BriefFormulas, are_not_taken_in_double) {
  const EpilogueId epilogue = intern_with_results("D = gelu(accum)");
  EXPECT_FALSE(takes_brief_formulas(epilogue, DType::bfloat16, DType::float64));
}

TEST(BriefFormulas, are_not_taken_where_another_result_would_show_them) {
  constexpr std::string_view text = "D = gelu(accum); other = D";
  EXPECT_TRUE(is_taken(intern_with_results(text, DType::bfloat16), DType::bfloat16));
  EXPECT_FALSE(is_taken(intern_with_results(text, DType::float16), DType::bfloat16));
  EXPECT_FALSE(is_taken(intern_with_results(text, DType::float32), DType::bfloat16));
}

TEST(BriefFormulas, are_taken_beside_reductions_of_any_type) {
  EXPECT_TRUE(is_taken(intern_with_results("D = gelu(accum); top = amax(D)"), DType::bfloat16));
}

TEST(BriefFormulas, are_emitted_for_the_operations_that_have_one) {
  const EpilogueId epilogue = intern_with_results("D = gelu(accum) + tanh(accum)");
  const std::string brief = emit_struct(epilogue, false, true);
  EXPECT_THAT(brief, HasSubstr("op::brief::gelu(accum)"));
  EXPECT_THAT(brief, HasSubstr("op::tanh(accum)"));
  EXPECT_THAT(emit_struct(epilogue, false, false), Not(HasSubstr("brief")));
}

Interval gelu_of(double x, bool is_brief) {
  const Program program(std::string_view("D = gelu(accum)"));
  IntervalMachine machine(program.graph(), DType::float32, is_brief);
  machine.run(Interval::exactly(x), {});
  return machine.output(0);
}

// The rounding error of bfloat16 is up to 2^-9 of a result.
TEST(BriefFormulas, err_by_less_than_a_third_of_the_rounding_of_results) {
  constexpr double third = 0x1p-9 / 3;
  for (const double x : {-3.0, -1.0, -0.1, 0.3, 2.0, 7.0}) {
    const Interval exact = gelu_of(x, false);
    const Interval brief = gelu_of(x, true);
    const double value = (exact.low + exact.high) / 2;
    EXPECT_LT(brief.low, exact.low) << x;
    EXPECT_GT(brief.high, exact.high) << x;
    const double absolute = row_of(Op::gelu).brief->absolute * 0x1p-24 * std::max(1.0, -x);
    EXPECT_LT(brief.high - value, third * std::fabs(value) + absolute) << x;
  }
}

}  // namespace
}  // namespace gemmery::epilogue
