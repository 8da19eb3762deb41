// SPDX-License-Identifier: Apache-2.0
// Described operations compiled: many at once, once only, with the instructions that they promise.
#include <gtest/gtest.h>

#include <chrono>

#include "describe/combinations.hpp"
#include "jit/compile_log.hpp"
#include "tests/describe/described_gemm.hpp"
#include "tests/support/no_disk_cache.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery::describe::tests {
namespace {

using DescribeCompile = gemmery::tests::WithNvrtc;

TEST_F(DescribeCompile, row_71_one_call_compiles_eight_operations) {
  std::vector<GemmOperationUniversal> operations;
  for (const int stages : {2, 3, 4, 5})
    for (const auto& warps : {std::array{2, 2, 1}, {2, 1, 1}})
      operations.push_back(operation_of({.stages = stages, .warps = warps}));
  const auto results = add_module(operations);
  ASSERT_EQ(results.size(), 8U);
  for (const CompileResult& result : results) EXPECT_TRUE(result.artifact.has_value());
}

TEST_F(DescribeCompile, row_71_one_that_fails_is_named_and_the_others_stay) {
  std::vector<GemmOperationUniversal> operations{operation_of({.stages = 2}),
                                                 operation_of({.compute_capability = 90}),
                                                 operation_of({.stages = 4})};
  const auto results = add_module(operations, Target{75});
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(results[i].error.has_value());
    EXPECT_EQ(results[i].job.kernel, static_cast<const Kernel&>(operations[i]));
  }
  EXPECT_TRUE(add_module(operations)[2].artifact.has_value());
}

TEST_F(DescribeCompile, row_75_an_equal_description_is_not_compiled_again) {
  const std::vector first{operation_of({.stages = 5})};
  const Artifact compiled = *add_module(first)[0].artifact;
  const auto begin = std::chrono::steady_clock::now();
  const std::vector second{operation_of({.stages = 5})};
  const Artifact again = *add_module(second)[0].artifact;
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(&compiled.state(), &again.state());
  EXPECT_LT(elapsed.count(), 5.0);
}

}  // namespace
}  // namespace gemmery::describe::tests
