// SPDX-License-Identifier: Apache-2.0
// The check for large problems: passes correct results, detects wrong ones.
#include <gtest/gtest.h>

#include "providers/host/oracle.hpp"
#include "providers/host/plain.hpp"
#include "tests/providers/host/random_gemm.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::host {
namespace {

DeclaredMath math_of(const GemmArguments& arguments) {
  const GemmProblem& problem = arguments.problem();
  return {.a = problem.a.dtype,
          .b = problem.b.dtype,
          .accumulator = problem.accumulator,
          .math = problem.math};
}

TEST(Freivalds, right_results_pass) {
  Random random(tests::random_seed());
  for (int i = 0; i < 100; ++i) {
    GemmTypes types = random_types(random);
    if (types.out == DType::int8 || types.out == DType::uint8)
      types.out = DType::int32;  // they saturate
    if (is_floating(types.out) && bit_width(types.out) == 8) types.out = DType::float32;
    RandomGemm gemm(random, types, random_shape(random), Fill::normal);
    const GemmArguments arguments = gemm.arguments();
    run_plain(arguments);
    const Comparison comparison =
        check_by_freivalds(arguments, math_of(arguments), {.seed = random()});
    EXPECT_EQ(comparison.mismatches, 0) << gemm.text() << " ratio " << comparison.worst_ratio;
    EXPECT_EQ(comparison.elements, arguments.out().element_count());
  }
}

TEST(Freivalds, one_wrong_element_fails) {
  Random random(tests::random_seed() + 1);
  for (int i = 0; i < 40; ++i) {
    RandomGemm gemm(random, {DType::float16, DType::float16, DType::float32, DType::float32},
                    {1, 200, 150, 64}, Fill::normal);
    if (gemm.options.alpha == 0) gemm.options.alpha = 1;
    const GemmArguments arguments = gemm.arguments();
    run_plain(arguments);
    const std::int64_t row = pick(random, 0, 199);
    const std::int64_t column = pick(random, 0, 149);
    gemm.out.set(0, row, column, gemm.out.get(0, row, column) + 1);
    // No rows are checked element by element: the vectors alone must detect it.
    const Comparison comparison =
        check_by_freivalds(arguments, math_of(arguments), {.rows = 0, .seed = random()});
    ASSERT_TRUE(comparison.first.has_value());
    EXPECT_EQ(comparison.first->row, row);
  }
}

TEST(Freivalds, nan_in_a_result_fails) {
  Random random(tests::random_seed() + 2);
  RandomGemm gemm(random, {DType::float32, DType::float32, DType::float32, DType::float32},
                  {1, 20, 15, 30}, Fill::normal);
  const GemmArguments arguments = gemm.arguments();
  run_plain(arguments);
  gemm.out.set(0, 3, 4, std::nan(""));
  EXPECT_GT(check_by_freivalds(arguments, math_of(arguments)).mismatches, 0);
}

}  // namespace
}  // namespace gemmery::host
