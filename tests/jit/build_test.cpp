// SPDX-License-Identifier: Apache-2.0
// The builder with a fake compiler and a fake cache.
#include "jit/build.hpp"

#include <gtest/gtest.h>
#include <gemmery/error.hpp>

#include <atomic>
#include <map>
#include <thread>

namespace gemmery::jit {
namespace {

class RecordingCache final : public CodeCache {
 public:
  explicit RecordingCache(std::map<std::string, CompiledCode, std::less<>>& entries)
      : entries_(entries) {}
  Found find(const CacheKey& key) noexcept override {
    const auto found = entries_.find(key.text());
    return {.code = found == entries_.end() ? std::nullopt : std::optional(found->second)};
  }
  void keep(const CacheKey& key, const CompiledCode& code) noexcept override {
    CompiledCode kept = code;
    kept.was_kept = true;
    entries_.emplace(key.text(), kept);
  }
  void discard(const CacheKey& key) noexcept override { entries_.erase(key.text()); }

 private:
  std::map<std::string, CompiledCode, std::less<>>& entries_;
};

class BuilderTest : public testing::Test {
 protected:
  CompiledCode count(const CompileRequest& request) {
    ++compiles_;
    return {.cubin = {}, .ptx = {}, .log = request.source, .usage = {}, .compile_ms = 1};
  }
  CacheKey key_of_request(const CompileRequest& request) const {
    const std::string compiler = is_opened_ ? opened_name_ : "compiler";
    std::string lines = compiler + " " + to_string(request.target) + " " + request.entry;
    for (const std::string& option : request.extra_options) lines += " " + option;
    return {.conditions = lines + "\n", .source = request.source};
  }
  CompilerSteps steps() {
    return {.key = [this](const CompileRequest& request) { return key_of_request(request); },
            .open = [this] { is_opened_ = true; },
            .compile = [this](const CompileRequest& request) { return count(request); }};
  }
  Builder make_builder() { return Builder(std::make_shared<RecordingCache>(kept_), steps()); }

  std::map<std::string, CompiledCode, std::less<>> kept_;
  std::atomic<int> compiles_ = 0;
  std::atomic<bool> is_opened_ = false;
  std::string opened_name_ = "compiler";  // the name after it was opened
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

TEST_F(BuilderTest, code_from_the_cache_that_is_refused_is_compiled_once_and_kept_instead) {
  make_builder().build(request_);
  kept_.begin()->second.log = "of no use";
  Builder builder = make_builder();
  const auto refused = builder.build(request_);
  EXPECT_TRUE(refused->was_kept);
  EXPECT_EQ(refused->log, "of no use");
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto other = builder.build_other(request_, refused);
    EXPECT_EQ(other->log, "source");
    EXPECT_FALSE(other->was_kept);
    EXPECT_EQ(builder.build(request_), other);
  }
  EXPECT_EQ(compiles_, 2);
  EXPECT_EQ(make_builder().build(request_)->log, "source");
  EXPECT_EQ(compiles_, 2);
}

TEST_F(BuilderTest, refused_code_stays_in_the_cache_where_it_cannot_be_compiled) {
  make_builder().build(request_);
  CompilerSteps without_compiler = steps();
  without_compiler.open = [] { throw Error({.kind = ErrorKind::unavailable}); };
  Builder builder(std::make_shared<RecordingCache>(kept_), without_compiler);
  const auto refused = builder.build(request_);
  EXPECT_THROW(builder.build_other(request_, refused), Error);
  EXPECT_EQ(kept_.size(), 1U);
}

TEST_F(BuilderTest, a_failed_build_is_tried_again_and_not_kept) {
  int attempts = 0;
  CompilerSteps failing_once = steps();
  failing_once.compile = [&](const CompileRequest&) -> CompiledCode {
    if (++attempts == 1) throw Error({.kind = ErrorKind::compile, .operand = "entry"});
    return {};
  };
  Builder builder(std::make_shared<RecordingCache>(kept_), failing_once);
  EXPECT_THROW(builder.build(request_), Error);
  EXPECT_TRUE(kept_.empty());
  EXPECT_NO_THROW(builder.build(request_));
  EXPECT_EQ(attempts, 2);
}

TEST_F(BuilderTest, code_is_kept_under_the_compiler_that_made_it_not_the_one_expected) {
  opened_name_ = "another compiler";
  make_builder().build(request_);
  ASSERT_EQ(kept_.size(), 1U);
  EXPECT_TRUE(kept_.begin()->first.starts_with(opened_name_));
  is_opened_ = false;
  make_builder().build(request_);
  EXPECT_EQ(compiles_, 1);
}

TEST_F(BuilderTest, what_the_key_does_not_cover_is_compiled_in_each_process) {
  CompileRequest with_files = request_;
  with_files.has_own_headers = true;
  CompileRequest with_folder = request_;
  with_folder.extra_options = {"-I/somewhere"};
  for (int process = 0; process < 2; ++process) {
    Builder builder = make_builder();
    builder.build(with_files);
    builder.build(with_folder);
  }
  EXPECT_TRUE(kept_.empty());
  EXPECT_EQ(compiles_, 4);
}

}  // namespace
}  // namespace gemmery::jit
