// SPDX-License-Identifier: Apache-2.0
// Parallel loops: each index once, exceptions, nesting, concurrency, fork.
#include "platform/parallel.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace gemmery::platform {
namespace {

// With the thread sanitizer, a forked child of a multithreaded process ends when it starts a
// thread.
#if defined(__SANITIZE_THREAD__)
constexpr bool children_may_have_threads = false;
#else
constexpr bool children_may_have_threads = true;
#endif
constexpr const char* no_threads_in_children =
    "the thread sanitizer ends children that start threads";

std::int64_t sum_in_parallel(std::int64_t count, int threads = 0) {
  std::atomic<std::int64_t> sum{0};
  parallel_for(
      count, 3,
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) sum += i;
      },
      threads);
  return sum;
}

TEST(Parallel, every_index_is_visited_exactly_once) {
  for (const std::int64_t count : {0, 1, 2, 7, 100, 1001}) {
    for (const std::int64_t grain : {1, 3, 64, 5000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      parallel_for(
          count, grain,
          [&](std::int64_t begin, std::int64_t end) {
            EXPECT_EQ(begin % grain, 0);
            EXPECT_LE(end - begin, grain);
            for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
          },
          4);
      for (const auto& visit : visits) ASSERT_EQ(visit, 1) << count << " by " << grain;
    }
  }
}

TEST(Parallel, a_grain_below_one_means_one) {
  int calls = 0;
  parallel_for(
      3, 0, [&](std::int64_t, std::int64_t) { ++calls; }, 1);
  EXPECT_EQ(calls, 3);
}

TEST(Parallel, the_first_exception_reaches_the_caller_and_the_pool_survives) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    EXPECT_THROW(parallel_for(
                     1000, 1,
                     [](std::int64_t begin, std::int64_t) {
                       if (begin % 7 == 3) throw std::domain_error("planted");
                     },
                     4),
                 std::domain_error);
    EXPECT_EQ(sum_in_parallel(100, 4), 4950);
  }
}

TEST(Parallel, nested_loops_run_in_the_thread_of_the_outer_one) {
  EXPECT_FALSE(is_inside_parallel_loop());
  std::atomic<int> inner{0};
  parallel_for(
      8, 1,
      [&](std::int64_t, std::int64_t) {
        EXPECT_TRUE(is_inside_parallel_loop());
        const auto self = std::this_thread::get_id();
        parallel_for(5, 2, [&](std::int64_t begin, std::int64_t end) {
          EXPECT_EQ(std::this_thread::get_id(), self);
          inner += static_cast<int>(end - begin);
        });
        EXPECT_TRUE(is_inside_parallel_loop());
      },
      4);
  EXPECT_EQ(inner, 40);
  EXPECT_FALSE(is_inside_parallel_loop());
}

TEST(Parallel, loops_of_many_threads_do_not_disturb_each_other) {
  std::vector<std::jthread> callers;
  for (int t = 0; t < 6; ++t)
    callers.emplace_back([] {
      for (int repeat = 0; repeat < 200; ++repeat)
        EXPECT_EQ(sum_in_parallel(257, 3), 257 * 256 / 2);
    });
}

TEST(Parallel, several_threads_work_on_one_loop) {
  // Each chunk waits until another thread has one too, so the loop ends only if two threads share
  // it.
  std::atomic<int> arrived{0};
  parallel_for(
      2, 1,
      [&](std::int64_t, std::int64_t) {
        ++arrived;
        while (arrived < 2) std::this_thread::yield();
      },
      2);
  EXPECT_EQ(arrived, 2);
}

TEST(Parallel, works_in_a_forked_child_of_a_process_that_used_the_pool) {
  if (!children_may_have_threads) GTEST_SKIP() << no_threads_in_children;
  ASSERT_EQ(sum_in_parallel(1000, 4), 499500);
  for (int repeat = 0; repeat < 20; ++repeat) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);
      _exit(sum_in_parallel(1000, 4) == 499500 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
  EXPECT_EQ(sum_in_parallel(1000, 4), 499500);
}

TEST(Parallel, a_child_forked_while_another_thread_runs_a_loop_can_run_its_own) {
  if (!children_may_have_threads) GTEST_SKIP() << no_threads_in_children;
  std::atomic<bool> done{false};
  std::jthread storm([&] {
    while (!done) EXPECT_EQ(sum_in_parallel(3000, 4), 3000 * 2999 / 2);
  });
  for (int repeat = 0; repeat < 20; ++repeat) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);
      _exit(sum_in_parallel(1000, 4) == 499500 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
  done = true;
}

TEST(Parallel, there_is_at_least_one_thread) { EXPECT_GE(thread_count(), 1); }

}  // namespace
}  // namespace gemmery::platform
