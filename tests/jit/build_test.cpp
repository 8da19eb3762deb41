// SPDX-License-Identifier: Apache-2.0
// The builder with a compiler and a cache that are stand-ins. Its key names the compiler, so it
// needs one to be there.
#include "jit/build.hpp"

#include <gtest/gtest.h>
#include <gemmery/error.hpp>

#include <atomic>
#include <map>
#include <thread>

#include "jit/nvrtc.hpp"

namespace gemmery::jit {
namespace {

class RecordingCache final : public CodeCache {
 public:
  explicit RecordingCache(std::map<std::string, CompiledCode, std::less<>>& entries)
      : entries_(entries) {}
  std::optional<CompiledCode> find(std::string_view key) noexcept override {
    const auto found = entries_.find(key);
    return found == entries_.end() ? std::nullopt : std::optional(found->second);
  }
  void keep(std::string_view key, const CompiledCode& code) noexcept override {
    entries_.emplace(key, code);
  }

 private:
  std::map<std::string, CompiledCode, std::less<>>& entries_;
};

class BuilderTest : public testing::Test {
 protected:
  void SetUp() override {
    const CompilerStatus status = compiler_status();
    if (!status.found) GTEST_SKIP() << status.searched;
  }
  CompiledCode count(const CompileRequest& request) {
    ++compiles_;
    return {.cubin = {}, .ptx = {}, .log = request.source, .usage = {}, .compile_ms = 1};
  }
  Builder make_builder() {
    return Builder(std::make_unique<RecordingCache>(kept_),
                   [this](const CompileRequest& request) { return count(request); });
  }

  std::map<std::string, CompiledCode, std::less<>> kept_;
  std::atomic<int> compiles_ = 0;
  const CompileRequest request_{
      .source = "source", .entry = "entry", .target = {90, 'a'}, .extra_options = {}};
};

TEST_F(BuilderTest, asks_the_compiler_once_for_equal_requests_from_24_threads) {
  Builder builder = make_builder();
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 24; ++thread)
      threads.emplace_back([&] { builder.build(request_); });
  }
  EXPECT_EQ(compiles_, 1);
}

TEST_F(BuilderTest, source_entry_target_and_options_each_make_another_key) {
  std::vector<CompileRequest> requests(5, request_);
  requests[1].source = "other source";
  requests[2].entry = "other_entry";
  requests[3].target = {80, 0};
  requests[4].extra_options = {"-DX"};
  Builder builder = make_builder();
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (const CompileRequest& request : requests) builder.build(request);
  }
  EXPECT_EQ(compiles_, 5);
}

TEST_F(BuilderTest, what_the_cache_kept_is_not_compiled_again) {
  make_builder().build(request_);
  EXPECT_EQ(kept_.size(), 1U);
  EXPECT_EQ(make_builder().build(request_)->log, "source");
  EXPECT_EQ(compiles_, 1);
}

TEST_F(BuilderTest, a_failed_build_is_tried_again_and_not_kept) {
  int attempts = 0;
  Builder builder(std::make_unique<RecordingCache>(kept_),
                  [&](const CompileRequest&) -> CompiledCode {
                    if (++attempts == 1)
                      throw Error({.kind = ErrorKind::compile, .operand = "entry"});
                    return {};
                  });
  EXPECT_THROW(builder.build(request_), Error);
  EXPECT_TRUE(kept_.empty());
  EXPECT_NO_THROW(builder.build(request_));
  EXPECT_EQ(attempts, 2);
}

}  // namespace
}  // namespace gemmery::jit
