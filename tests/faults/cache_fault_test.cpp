// SPDX-License-Identifier: Apache-2.0
// RELIABILITY G12: if any system call fails while code is searched or stored, the caller gets the
// right code or none, and the cache works again after the fault.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gemmery/log.hpp>

#include <cerrno>
#include <cstdlib>

#include "tests/faults/failing_calls.hpp"
#include "tests/faults/sample_code.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::tests {
namespace {

using jit::DiskCache;

bool is_soak() { return std::getenv("GEMMERY_SOAK") != nullptr; }

// Uses of the cache: keeps 1, finds 2, does not find 3, evicts others, and so on.
enum class Scene { keep, find, miss, evict, heal, discard };
constexpr std::array scenes{Scene::keep,  Scene::find, Scene::miss,
                            Scene::evict, Scene::heal, Scene::discard};

class CacheFault : public testing::Test {
 protected:
  ~CacheFault() override { clear_fault_plan(); }

  jit::CacheSettings settings() const {
    jit::CacheSettings made = settings_at(folder_ / "cache");
    made.most_bytes = 12'000;
    made.patience = std::chrono::milliseconds(50);
    return made;
  }

  // The cache before the scene: entries 2 and 4; entry 4 is damaged for `heal`.
  void prepare(Scene scene) {
    std::filesystem::remove_all(folder_ / "cache");
    DiskCache cache(settings());
    for (const int number : {2, 4}) cache.keep(sample_key(number), sample_code(number));
    if (scene == Scene::heal)
      std::filesystem::resize_file(entry_path(folder_ / "cache", sample_key(4)) / "kernel.cubin",
                                   100);
  }

  void play(Scene scene) {
    DiskCache cache(settings(), failing_calls());
    switch (scene) {
      case Scene::keep:
        cache.keep(sample_key(1), sample_code(1));
        break;
      case Scene::find:
        expect_right(cache, 2);
        break;
      case Scene::miss:
        EXPECT_FALSE(cache.find(sample_key(3)).code);
        break;
      case Scene::evict:
        for (const int number : {5, 6, 7}) cache.keep(sample_key(number), sample_code(number));
        break;
      case Scene::heal:
        EXPECT_FALSE(cache.find(sample_key(4)).code);
        break;
      case Scene::discard:
        cache.discard(sample_key(2));
        expect_right(cache, 2);
        break;
    }
  }

  static void expect_right(DiskCache& cache, int number) {
    const auto found = cache.find(sample_key(number));
    if (found.code) {
      EXPECT_TRUE(is_sample(*found.code, number));
    }
  }

  // Every entry that is found is correct, and missing ones can be kept.
  void expect_working() {
    clear_fault_plan();
    for (const int number : {1, 2, 4, 5, 6, 7}) {
      DiskCache cache(settings());
      expect_right(cache, number);
      cache.keep(sample_key(number), sample_code(number));
      EXPECT_TRUE(DiskCache(settings()).find(sample_key(number)).code) << number;
    }
  }

  // Applies the plan to each call of the scene in turn, or to some of them.
  int strike_each_call(Scene scene, FaultPlan plan) {
    const int step = is_soak() ? 1 : 29;
    int plays = 0;
    for (long first = plays_ % step;; first += step) {
      prepare(scene);
      plan.first = first;
      set_fault_plan(plan);
      play(scene);
      const bool is_past_the_end = calls_made() <= first;
      ++plays;
      expect_working();
      if (is_past_the_end || testing::Test::HasFailure()) break;
    }
    plays_ += plays;
    return plays;
  }

  TemporaryFolder folder_;
  int plays_ = 0;
};

TEST_F(CacheFault, an_error_of_any_call_is_a_miss) {
  for (const int error : {ENOSPC, EACCES, EROFS, EIO, EDQUOT, ESTALE, EBUSY, ENOENT, EMFILE}) {
    for (const Scene scene : scenes) strike_each_call(scene, {.error = error, .only = {}});
  }
  std::printf("%d faults\n", plays_);
}

TEST_F(CacheFault, errors_of_all_later_calls_are_a_miss) {
  for (const int error : {ENOSPC, EIO}) {
    for (const Scene scene : scenes)
      strike_each_call(scene, {.error = error, .count = 1'000'000, .only = {}});
  }
  std::printf("%d faults\n", plays_);
}

TEST_F(CacheFault, each_kind_of_call_may_fail_for_ever) {
  for (const std::string& call : call_names()) {
    for (const Scene scene : scenes) {
      prepare(scene);
      set_fault_plan({.error = EIO, .count = 1'000'000, .only = call});
      play(scene);
      expect_working();
    }
  }
}

TEST_F(CacheFault, interrupted_and_short_calls_change_nothing) {
  for (const Fault fault : {Fault::interrupted, Fault::half}) {
    for (const Scene scene : {Scene::keep, Scene::find}) {
      prepare(scene);
      set_fault_plan({.fault = fault, .count = 1'000'000, .only = {}});
      DiskCache cache(settings(), failing_calls());
      const int number = scene == Scene::keep ? 1 : 2;
      if (scene == Scene::keep) cache.keep(sample_key(1), sample_code(1));
      const auto found = cache.find(sample_key(number));
      ASSERT_TRUE(found.code);
      EXPECT_TRUE(is_sample(*found.code, number));
      clear_fault_plan();
    }
  }
}

TEST_F(CacheFault, calls_that_are_interrupted_for_ever_end) {
  prepare(Scene::keep);
  set_fault_plan({.error = EINTR, .count = 100'000'000, .only = {}});
  play(Scene::keep);
  play(Scene::find);
  expect_working();
}

TEST_F(CacheFault, lies_about_files_change_nothing_that_is_found) {
  for (const Scene scene : scenes) strike_each_call(scene, {.fault = Fault::lie, .only = {}});
  for (const char* const call : {"fstat", "fstatat", "renameat"}) {
    for (const Scene scene : scenes) {
      prepare(scene);
      set_fault_plan({.fault = Fault::lie, .count = 1'000'000, .only = call});
      play(scene);
      expect_working();
    }
  }
}

TEST_F(CacheFault, a_rename_that_fails_leaves_the_own_code_in_use_and_nothing_behind) {
  prepare(Scene::keep);
  set_fault_plan({.error = EBUSY, .count = 1'000'000, .only = "renameat"});
  DiskCache cache(settings(), failing_calls());
  cache.keep(sample_key(1), sample_code(1));
  EXPECT_EQ(cache.counters().not_kept, 1U);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "cache/v1/tmp"));
}

TEST_F(CacheFault, a_cache_that_cannot_be_written_is_told_once) {
  prepare(Scene::keep);
  int warnings = 0;
  std::string words;
  set_log_sink(
      [&](LogLevel, std::string_view message) {
        ++warnings;
        words = message;
      },
      LogLevel::warning);
  set_fault_plan({.error = ENOSPC, .count = 1'000'000, .only = "write"});
  DiskCache cache(settings(), failing_calls());
  for (int number = 10; number < 15; ++number) {
    cache.keep(sample_key(number), sample_code(number));
    EXPECT_FALSE(cache.find(sample_key(number)).code);
  }
  set_log_sink({});
  EXPECT_EQ(warnings, 1);
  EXPECT_NE(words.find("No space left"), std::string::npos) << words;
}

TEST_F(CacheFault, without_locks_the_bound_is_kept_to_within_a_few_entries) {
  clear_fault_plan();
  set_fault_plan({.error = ENOSYS, .count = 100'000'000, .only = "fstatfs"});
  DiskCache cache(settings(), failing_calls());
  for (int number = 0; number < 70; ++number) {
    EXPECT_EQ(cache.find(sample_key(number)).claim, nullptr);
    cache.keep(sample_key(number), sample_code(number));
  }
  std::int64_t bytes = 0;
  for (const jit::EntryFacts& entry : cache.open_own().root->list()) bytes += entry.bytes;
  EXPECT_LT(bytes, settings().most_bytes + 33 * 4000);
  EXPECT_TRUE(cache.find(sample_key(69)).code);
}

// The same on a real file system that is full. Needs a mount.
TEST_F(CacheFault, a_full_file_system_is_a_miss) {
  const std::string mounted = folder_ / "small";
  std::filesystem::create_directory(mounted);
  if (mount("none", mounted.c_str(), "tmpfs", 0, "size=32k,mode=0700") != 0)
    GTEST_SKIP() << "this process may not mount a file system";
  jit::CacheSettings own = settings_at(mounted + "/cache");
  int found = 0;
  {
    DiskCache cache(own);
    for (int number = 0; number < 12; ++number) {
      cache.keep(sample_key(number), sample_code(number));
      const auto code = cache.find(sample_key(number)).code;
      if (!code) continue;
      EXPECT_TRUE(is_sample(*code, number));
      ++found;
    }
    EXPECT_GT(cache.counters().not_kept, 0U);
  }
  umount(mounted.c_str());
  EXPECT_LT(found, 12);
}

// RELIABILITY F26: the cache contains no programs, so it works on a file system mounted noexec.
// Needs a mount.
TEST_F(CacheFault, a_file_system_without_programs_is_as_good) {
  const std::string mounted = folder_ / "noexec";
  std::filesystem::create_directory(mounted);
  if (mount("none", mounted.c_str(), "tmpfs", MS_NOEXEC, "size=1m,mode=0700") != 0)
    GTEST_SKIP() << "this process may not mount a file system";
  {
    DiskCache(settings_at(mounted + "/cache")).keep(sample_key(1), sample_code(1));
    const auto code = DiskCache(settings_at(mounted + "/cache")).find(sample_key(1)).code;
    EXPECT_TRUE(code && is_sample(*code, 1));
  }
  umount(mounted.c_str());
}

}  // namespace
}  // namespace gemmery::tests
