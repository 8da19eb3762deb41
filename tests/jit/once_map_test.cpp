// SPDX-License-Identifier: Apache-2.0
#include "jit/once_map.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace gemmery::jit {
namespace {

constexpr int thread_count = 24;

// Runs `body(thread)` on all threads at the same moment.
template <class Body>
void run_at_once(Body body) {
  std::latch start(thread_count);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < thread_count; ++thread) {
    threads.emplace_back([&, thread] {
      start.arrive_and_wait();
      body(thread);
    });
  }
}

TEST(OnceMap, one_of_24_threads_makes_the_value_and_all_get_it) {
  OnceMap<std::string, int> map;
  std::atomic<int> makes = 0;
  std::vector<std::shared_ptr<const int>> values(thread_count);
  run_at_once([&](int thread) {
    values[static_cast<std::size_t>(thread)] = map.get("key", [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return ++makes;
    });
  });
  EXPECT_EQ(makes, 1);
  for (const auto& value : values) EXPECT_EQ(value, values.front());
}

TEST(OnceMap, keys_are_made_side_by_side) {
  OnceMap<int, int> map;
  std::latch all_inside(thread_count);  // would block forever if one key waited for another
  run_at_once([&](int thread) {
    map.get(thread, [&] {
      all_inside.arrive_and_wait();
      return thread;
    });
  });
  EXPECT_EQ(map.size(), static_cast<std::size_t>(thread_count));
}

TEST(OnceMap, a_failure_reaches_all_that_wait_and_is_forgotten) {
  OnceMap<std::string, int> map;
  std::atomic<int> makes = 0;
  std::atomic<int> failures = 0;
  run_at_once([&](int) {
    try {
      map.get("key", [&]() -> int {
        ++makes;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        throw std::runtime_error("no");
      });
    } catch (const std::runtime_error&) {
      ++failures;
    }
  });
  EXPECT_EQ(failures, thread_count);
  EXPECT_GE(makes, 1);
  EXPECT_EQ(map.size(), 0U);
  EXPECT_EQ(*map.get("key", [] { return 7; }), 7);
}

TEST(OnceMap, a_value_of_no_use_is_replaced_once_and_only_while_it_is_there) {
  OnceMap<std::string, int> map;
  const std::shared_ptr<const int> old = map.get("key", [] { return 1; });
  std::atomic<int> makes = 0;
  std::vector<std::shared_ptr<const int>> values(thread_count);
  run_at_once([&](int thread) {
    values[static_cast<std::size_t>(thread)] = map.get_other("key", old, [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return 1 + ++makes;
    });
  });
  EXPECT_EQ(makes, 1);
  for (const auto& value : values) EXPECT_EQ(*value, 2);
  EXPECT_EQ(map.get("key", [] { return 3; }), values.front());
  EXPECT_EQ(*old, 1);
}

}  // namespace
}  // namespace gemmery::jit
