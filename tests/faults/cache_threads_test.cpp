// SPDX-License-Identifier: Apache-2.0
// RELIABILITY F23, F42, F45: 24 threads use one builder, one cache, one dump and one log, while
// entries are evicted, damaged and cleared. Also run with the thread sanitizer.
#include <gtest/gtest.h>
#include <gemmery/error.hpp>
#include <gemmery/log.hpp>

#include <atomic>
#include <fstream>
#include <random>
#include <thread>

#include "jit/build.hpp"
#include "tests/faults/sample_code.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::tests {
namespace {

using jit::Builder;
using jit::CompileRequest;
using jit::DiskCache;

constexpr int thread_count = 24;
constexpr int kernels = 30;

int number_of(const CompileRequest& request) { return std::stoi(request.source); }

CompileRequest request_of(int number) {
  return {.source = std::to_string(number),
          .entry = "kernel",
          .target = {90, 'a'},
          .extra_options = {}};
}

class CacheThreads : public testing::Test {
 protected:
  jit::CacheSettings settings(std::int64_t most_bytes) const {
    jit::CacheSettings made = settings_at(folder_ / "cache");
    made.most_bytes = most_bytes;
    return made;
  }

  jit::CompilerSteps steps() {
    return {.key = [](const CompileRequest& request) { return sample_key(number_of(request)); },
            .open = [] {},
            .compile =
                [this](const CompileRequest& request) {
                  ++compiles_;
                  jit::CompiledCode code = sample_code(number_of(request));
                  code.compile_ms = 1;
                  return code;
                }};
  }

  // Each thread does `work` this often, with its own random numbers.
  template <class Work>
  static void on_all_threads(int turns, Work&& work) {
    const std::uint64_t seed = random_seed();
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < thread_count; ++thread) {
      threads.emplace_back([&work, turns, seed, thread] {
        std::mt19937_64 random(seed + static_cast<std::uint64_t>(thread));
        for (int turn = 0; turn < turns; ++turn) work(static_cast<int>(random() % kernels));
      });
    }
  }

  TemporaryFolder folder_;
  std::atomic<int> compiles_{0};
};

TEST_F(CacheThreads, at_one_builder_compile_each_kernel_once_and_get_the_right_code) {
  std::atomic<int> wrong{0};
  std::atomic<int> told{0};
  set_log_sink([&](LogLevel, std::string_view) { ++told; }, LogLevel::debug);
  for (const bool is_warm : {false, true}) {
    Builder builder(std::make_shared<DiskCache>(settings(1 << 30)), steps(),
                    std::make_shared<jit::BuildDump>(folder_ / "dumps"));
    on_all_threads(40, [&](int number) {
      if (!is_sample(*builder.build(request_of(number)), number)) ++wrong;
    });
    EXPECT_EQ(compiles_, kernels) << is_warm;
  }
  set_log_sink({});
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(told, 0);
}

TEST_F(CacheThreads, with_builders_of_their_own_share_a_cache_that_is_too_small) {
  std::atomic<int> wrong{0};
  const auto cache = std::make_shared<DiskCache>(settings(40'000));  // a third of the kernels fit
  on_all_threads(6, [&](int number) {
    Builder builder(cache, steps());
    if (!is_sample(*builder.build(request_of(number)), number)) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(cache->counters().evicted, 0U);
}

TEST_F(CacheThreads, survive_that_entries_are_cleared_and_damaged_under_them) {
  std::atomic<int> wrong{0};
  const auto cache = std::make_shared<DiskCache>(settings(1 << 30));
  std::jthread vandal([&](const std::stop_token& stop) {
    std::mt19937_64 random(random_seed());
    while (!stop.stop_requested()) {
      const auto entry =
          entry_path(folder_ / "cache", sample_key(static_cast<int>(random() % kernels)));
      std::ofstream(entry / "kernel.cubin") << "damage";
      if (const auto own = cache->open_own(); own.root && random() % 8 == 0)
        DiskCache::trim(*own.root, 0);
    }
  });
  on_all_threads(8, [&](int number) {
    if (!obtain(*cache, number)) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
}

TEST_F(CacheThreads, that_wait_for_a_build_that_fails_all_get_its_error_and_may_try_again) {
  std::atomic<bool> is_broken{true};
  jit::CompilerSteps failing = steps();
  failing.compile = [&](const CompileRequest& request) -> jit::CompiledCode {
    if (is_broken) throw Error({.kind = ErrorKind::compile, .operand = request.entry});
    return sample_code(number_of(request));
  };
  Builder builder(std::make_shared<DiskCache>(settings(1 << 30)), failing);
  std::atomic<int> errors{0};
  on_all_threads(1, [&](int) {
    try {
      builder.build(request_of(1));
    } catch (const Error&) {
      ++errors;
    }
  });
  EXPECT_EQ(errors, thread_count);
  is_broken = false;
  on_all_threads(1, [&](int) { EXPECT_TRUE(is_sample(*builder.build(request_of(1)), 1)); });
}

}  // namespace
}  // namespace gemmery::tests
