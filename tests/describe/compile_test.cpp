// SPDX-License-Identifier: Apache-2.0
// Compilation of described operations: many at once, each only once, with the requested
// instructions.
#include <gtest/gtest.h>

#include <gemmery/artifact.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "describe/combinations.hpp"
#include "tests/describe/described_gemm.hpp"
#include "tests/support/no_disk_cache.hpp"
#include "tests/support/temporary_folder.hpp"
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

TEST_F(DescribeCompile, row_72_eight_operations_at_once_take_less_than_one_by_one) {
  const auto eight = [](int stages) {
    std::vector<GemmOperationUniversal> operations;
    for (const Layout a : {Layout::RowMajor, Layout::ColumnMajor})
      for (const Layout b : {Layout::RowMajor, Layout::ColumnMajor})
        for (const Element cd : {Element::float16, Element::float32})
          operations.push_back(operation_of({.tile = {32, 64, 32},
                                             .stages = stages,
                                             .cd = cd,
                                             .layouts = {a, b, Layout::RowMajor}}));
    return operations;
  };
  const auto milliseconds = [](auto&& body) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
        .count();
  };
  const double together = milliseconds([&] { add_module(eight(3)); });
  const double apart = milliseconds([&] {
    for (const GemmOperationUniversal& operation : eight(4)) add_module({&operation, 1});
  });
  std::printf("8 at once %.0f ms, one by one %.0f ms\n", together, apart);
  if (std::thread::hardware_concurrency() < 4)
    GTEST_SKIP() << "half the time is promised for 4 cores; here are "
                 << std::thread::hardware_concurrency();
  EXPECT_LE(together, apart / 2);
}

TEST_F(DescribeCompile, row_74_neither_nvcc_nor_a_host_compiler_is_needed) {
  const char* const path = std::getenv("PATH");
  const std::string before = path != nullptr ? path : "";
  setenv("PATH", "/nowhere", 1);
  const std::vector operations{operation_of({.stages = 6})};
  const auto results = add_module(operations);
  setenv("PATH", before.c_str(), 1);
  ASSERT_TRUE(results[0].artifact.has_value()) << results[0].error->what();
}

// --- machine code -------------------------------------------------------------------------------

constexpr std::string_view tensor_instructions[] = {"HMMA", "IMMA", "DMMA", "QMMA"};

bool has_tensor_instruction(const std::map<std::string, int>& mix) {
  return std::ranges::any_of(mix, [](const auto& row) {
    return std::ranges::any_of(tensor_instructions,
                               [&](std::string_view kind) { return row.first.starts_with(kind); });
  });
}

TEST_F(DescribeCompile, row_22_every_combination_compiles) {
  std::vector<GemmOperationUniversal> operations;
  for (const Combination& row : combinations()) operations.emplace_back(description_of_row(row));
  for (const CompileResult& result : add_module(operations)) {
    ASSERT_TRUE(result.artifact.has_value()) << result.error->what();
    EXPECT_EQ(result.artifact->resources()->spill_store_bytes, 0) << result.job.kernel.name();
  }
}

TEST_F(DescribeCompile, row_21_tensor_op_uses_tensor_cores_and_simt_does_not) {
  const gemmery::tests::TemporaryFolder folder;
  for (const Combination& row : combinations()) {
    const GemmOperationUniversal operation(description_of_row(row));
    const std::string path = folder.path() + "/kernel.gemmery";
    const StoredArtifact stored[] = {{.artifact = operation.compile(operation.target())}};
    save_artifacts(path, stored);
    const ArtifactSummary summary = inspect_artifacts(path).kernels.front();
    if (!summary.no_instructions.empty()) GTEST_SKIP() << summary.no_instructions;
    EXPECT_EQ(has_tensor_instruction(summary.instructions),
              row.opcode_class == OpcodeClass::TensorOp)
        << operation.name();
  }
}

}  // namespace
}  // namespace gemmery::describe::tests
