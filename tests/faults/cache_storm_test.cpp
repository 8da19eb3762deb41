// SPDX-License-Identifier: Apache-2.0
// RELIABILITY G10: many processes that start with the same kernels and one empty cache.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <thread>

#include "tests/faults/failing_calls.hpp"
#include "tests/faults/sample_code.hpp"
#include "tests/faults/shared_tally.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::tests {
namespace {

using jit::CodeCache;
using jit::DiskCache;

constexpr int kernels = 20;

// Counters that all processes share.
struct Tally {
  std::atomic<int> is_open{0};
  std::atomic<int> failures{0};
  std::atomic<int> compiles[kernels]{};
};

// Obtains all kernels as a program would, with 2 ms for a compilation.
void need_all(DiskCache& cache, const SharedTally<Tally>& tally, int process) {
  for (int turn = 0; turn < kernels; ++turn) {
    const int number = (turn + process) % kernels;
    const CodeCache::Found found = cache.find(sample_key(number));
    if (found.code) {
      tally->failures += is_sample(*found.code, number) ? 0 : 1;
      continue;
    }
    ++tally->compiles[number];
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    cache.keep(sample_key(number), sample_code(number));
  }
}

struct StormOutcome {
  int failures = 0;
  int crashes = 0;
  int most_compiles = 0;  // the maximum for one kernel
};

StormOutcome storm(int processes, const jit::CacheSettings& settings,
                   const platform::FileCalls& calls = platform::system_file_calls()) {
  SharedTally<Tally> tally;
  for (int process = 0; process < processes; ++process) {
    if (fork() != 0) continue;
    alarm(120);
    while (tally->is_open == 0) std::this_thread::yield();
    DiskCache cache(settings, calls);
    need_all(cache, tally, process);
    _exit(0);
  }
  tally->is_open = 1;
  StormOutcome outcome;
  outcome.crashes = count_failed_children(processes);
  outcome.failures = tally->failures;
  for (const std::atomic<int>& count : tally->compiles)
    outcome.most_compiles = std::max(outcome.most_compiles, count.load());
  return outcome;
}

int process_count() { return std::getenv("GEMMERY_SOAK") != nullptr ? 64 : 24; }

TEST(CacheStorm, on_a_local_file_system_each_kernel_is_compiled_once) {
  TemporaryFolder folder(std::filesystem::temp_directory_path());  // on a disk
  const StormOutcome outcome = storm(process_count(), settings_at(folder / "cache"));
  EXPECT_EQ(outcome.crashes, 0);
  EXPECT_EQ(outcome.failures, 0);
  EXPECT_EQ(outcome.most_compiles, 1);
}

TEST(CacheStorm, without_locks_each_process_compiles_a_kernel_once_at_most) {
  set_fault_plan({.error = ENOSYS, .count = 1'000'000'000, .only = "fstatfs"});
  TemporaryFolder folder;
  const StormOutcome outcome =
      storm(process_count(), settings_at(folder / "cache"), failing_calls());
  clear_fault_plan();
  EXPECT_EQ(outcome.crashes, 0);
  EXPECT_EQ(outcome.failures, 0);
  EXPECT_LE(outcome.most_compiles, process_count());
}

// A lock whose holder never releases it: the others continue without it after a time.
TEST(CacheStorm, with_a_dead_lock_each_process_compiles_a_kernel_once_at_most) {
  TemporaryFolder folder;
  jit::CacheSettings settings = settings_at(folder / "cache");
  settings.patience = std::chrono::milliseconds(20);
  DiskCache holder(settings);
  std::vector<CodeCache::Found> claims;
  for (int number = 0; number < kernels; ++number)
    claims.push_back(holder.find(sample_key(number)));
  const StormOutcome outcome = storm(process_count(), settings);
  EXPECT_EQ(outcome.crashes, 0);
  EXPECT_EQ(outcome.failures, 0);
  EXPECT_LE(outcome.most_compiles, process_count());
}

// RELIABILITY F7.
TEST(CacheStorm, names_made_in_forked_children_are_all_different) {
  constexpr int children = 64;
  const int names_each = std::getenv("GEMMERY_SOAK") != nullptr ? 15'625 : 200;
  int channel[2];
  ASSERT_EQ(pipe(channel), 0);
  for (int child = 0; child < children; ++child) {
    if (fork() != 0) continue;
    for (int turn = 0; turn < names_each; ++turn) {
      const std::string name = platform::random_name();
      if (write(channel[1], name.data(), name.size()) != 16) _exit(1);
    }
    _exit(0);
  }
  close(channel[1]);
  std::set<std::string> names;
  std::string name(16, '\0');
  while (read(channel[0], name.data(), 16) == 16) names.insert(name);
  close(channel[0]);
  for (int child = 0; child < children; ++child) wait(nullptr);
  EXPECT_EQ(names.size(), static_cast<std::size_t>(children * names_each));
}

}  // namespace
}  // namespace gemmery::tests
