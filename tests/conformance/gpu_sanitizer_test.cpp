// SPDX-License-Identifier: Apache-2.0
// Degenerate problems by kernels of each family under the tools of compute-sanitizer: no error and
// no hazard. conformance_gpu_test, which lies beside this program, runs them. Only with
// GEMMERY_SOAK=1.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <tuple>

#include <fmt/format.h>

#include <gemmery/gemmery.hpp>

#include "platform/process.hpp"
#include "tests/conformance/random_source.hpp"
#include "tests/conformance/sanitizer.hpp"

namespace gemmery::conformance {
namespace {

using ToolOnFamily = std::tuple<const char*, const char*>;

class GpuSanitizer : public testing::TestWithParam<ToolOnFamily> {
 protected:
  void SetUp() override {
    if (!is_soak()) GTEST_SKIP() << "runs with GEMMERY_SOAK=1";
    if (devices().empty()) GTEST_SKIP() << "no GPU on this machine";
    if (!(sanitizer_ = find_sanitizer())) GTEST_SKIP() << "no compute-sanitizer here";
  }

  // The short form: tools slow kernels down a hundredfold.
  platform::ProcessResult run_under(std::string_view tool, std::string_view family) const {
    const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    std::vector<std::string> words = sanitizer_words(*sanitizer_, tool);
    words.push_back(folder / "conformance_gpu_test");
    words.push_back(fmt::format("--gtest_filter=*degenerate*/{}", family));
    std::vector<std::string> entries = environment();
    std::erase_if(entries, [](const std::string& entry) {
      return entry.starts_with("GEMMERY_SOAK=") || entry.starts_with("GTEST_");
    });
    entries.push_back(fmt::format("GEMMERY_TEST_SEED={}", test_seed()));
    return platform::run_process({.words = std::move(words),
                                  .environment = std::move(entries),
                                  .folder = std::filesystem::current_path(),
                                  .time_limit = std::chrono::seconds(300)});
  }

 private:
  std::optional<std::string> sanitizer_;
};

TEST_P(GpuSanitizer, finds_nothing_in_degenerate_problems) {
  const auto [tool, family] = GetParam();
  const platform::ProcessResult result = run_under(tool, family);
  EXPECT_EQ(result.end, platform::ProcessResult::End::exited);
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("[  PASSED  ] 1 test"), std::string::npos) << result.output;
  EXPECT_NE(result.output.find("SUMMARY: 0 "), std::string::npos) << result.output;
}

std::string name_of(const testing::TestParamInfo<ToolOnFamily>& instance) {
  return fmt::format("{}_{}", std::get<0>(instance.param), std::get<1>(instance.param));
}

INSTANTIATE_TEST_SUITE_P(
    Of, GpuSanitizer,
    testing::Combine(testing::Values("memcheck", "racecheck", "initcheck", "synccheck"),
                     testing::Values("sm90", "sm80", "simt", "skinny", "depthwise")),
    name_of);

}  // namespace
}  // namespace gemmery::conformance
