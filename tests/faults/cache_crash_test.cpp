// SPDX-License-Identifier: Apache-2.0
// RELIABILITY G11: processes that are killed at random points while they use the cache do not cause
// hangs, failures or wrong results in later ones.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "tests/faults/sample_code.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::tests {
namespace {

using jit::DiskCache;
using std::chrono::microseconds;

constexpr int kernels = 12;

// Keeps, finds and evicts until it is killed.
[[noreturn]] void work(const jit::CacheSettings& settings) {
  for (int turn = 0;; ++turn) {
    DiskCache cache(settings);
    if (!obtain(cache, turn % kernels)) _exit(1);
  }
}

TEST(CacheCrash, processes_killed_at_random_points_leave_a_cache_that_works) {
  const int kills = std::getenv("GEMMERY_SOAK") != nullptr ? 200 : 25;
  std::mt19937_64 random(random_seed());
  TemporaryFolder folder(std::filesystem::temp_directory_path());  // on a disk
  jit::CacheSettings settings = settings_at(folder / "cache");
  settings.most_bytes = 25'000;  // only some of the twelve entries fit
  int wrong = 0;
  std::chrono::steady_clock::duration longest{0};
  for (int turn = 0; turn < kills; ++turn) {
    const pid_t child = fork();
    if (child == 0) work(settings);
    std::this_thread::sleep_for(microseconds(random() % 40'000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the child found wrong code";
    const auto start = std::chrono::steady_clock::now();
    DiskCache cache(settings);
    for (int number = 0; number < kernels; ++number) {
      const auto found = cache.find(sample_key(number));
      wrong += found.code && !is_sample(*found.code, number) ? 1 : 0;
    }
    longest = std::max(longest, std::chrono::steady_clock::now() - start);
    ASSERT_TRUE(obtain(cache, 0));
    EXPECT_TRUE(cache.find(sample_key(0)).code);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LT(longest, std::chrono::seconds(5));
  std::printf("%d kills; the twelve finds after one took at most %.1f ms\n", kills,
              std::chrono::duration<double, std::milli>(longest).count());
}

TEST(CacheCrash, a_killed_writer_leaves_a_bound_that_still_holds) {
  std::mt19937_64 random(random_seed());
  TemporaryFolder folder;
  jit::CacheSettings settings = settings_at(folder / "cache");
  settings.most_bytes = 25'000;
  for (int turn = 0; turn < 20; ++turn) {
    const pid_t child = fork();
    if (child == 0) work(settings);
    std::this_thread::sleep_for(microseconds(random() % 5'000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    std::int64_t bytes = 0;
    const auto own = DiskCache(settings).open_own();
    for (const jit::EntryFacts& entry : own.root->list()) bytes += entry.bytes;
    EXPECT_LE(bytes, settings.most_bytes);
  }
}

}  // namespace
}  // namespace gemmery::tests
