// SPDX-License-Identifier: Apache-2.0
// The public functions of the process's cache: contents, verification, cleanup.
#include <gemmery/cache.hpp>
#include <gemmery/error.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>

#include "tests/faults/sample_code.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery {
namespace {

// The environment at the first use determines the process's cache, so each case is a child process.
bool holds_after(const std::function<void()>& prepare, const std::function<bool()>& claim) {
  return tests::holds_in_child([&] {
    unsetenv("GEMMERY_CACHE_READONLY");
    setenv("GEMMERY_CACHE_MAX_BYTES", "1000000", 1);
    prepare();
    return claim();
  });
}

class CacheView : public testing::Test {
 protected:
  void keep(int count) const {
    for (int number = 0; number < count; ++number)
      jit::DiskCache(tests::settings_at(folder_ / "cache"))
          .keep(tests::sample_key(number), tests::sample_code(number));
  }
  void damage(int number) const {
    std::ofstream(tests::entry_path(folder_ / "cache", tests::sample_key(number)) / "log") << "x";
  }
  bool holds(const std::function<bool()>& claim) const {
    return holds_after([this] { setenv("GEMMERY_CACHE_DIR", (folder_ / "cache").c_str(), 1); },
                       claim);
  }

  tests::TemporaryFolder folder_;
};

TEST_F(CacheView, reports_place_size_and_counters) {
  keep(3);
  EXPECT_TRUE(holds([&] {
    const CacheReport report = cache_report();
    return report.is_usable && report.folder == folder_ / "cache" && report.entries == 3 &&
           report.bytes > 9000 && report.most_bytes == 1'000'000 && report.has_locks &&
           !report.file_system.empty() && report.counters.kept == 3 &&
           report.own_counters.kept == 0;
  }));
}

TEST_F(CacheView, lists_entries_with_what_they_are) {
  keep(2);
  damage(1);
  EXPECT_TRUE(holds([] {
    const std::vector<CachedCode> codes = list_cache();
    if (codes.size() != 2) return false;
    const CachedCode& sound = codes[0].target == "?" ? codes[1] : codes[0];
    return sound.name == jit::entry_name(tests::sample_key(0)) && sound.target == "sm_90a" &&
           sound.form == "cubin" && sound.entry == "kernel" && sound.bytes > 3000;
  }));
}

TEST_F(CacheView, names_faulty_entries_and_removes_them) {
  keep(4);
  damage(2);
  EXPECT_TRUE(holds([] {
    const CacheCheck check = verify_cache();
    return check.sound == 3 && check.faulty.size() == 1 &&
           check.faulty[0].starts_with(jit::entry_name(tests::sample_key(2)) + ": damaged");
  }));
  EXPECT_TRUE(holds([] { return prune_cache(1'000'000).entries == 1; }));
  EXPECT_TRUE(holds([] { return verify_cache().sound == 3 && verify_cache().faulty.empty(); }));
}

TEST_F(CacheView, is_pruned_to_a_size_and_cleared) {
  keep(5);
  EXPECT_TRUE(holds([] { return prune_cache(8000).entries == 3 && cache_report().bytes <= 8000; }));
  EXPECT_TRUE(holds([] {
    const CacheRemoval removal = clear_cache();
    const CacheReport report = cache_report();
    return removal.entries == 2 && report.entries == 0 && report.counters.kept == 0;
  }));
}

TEST_F(CacheView, a_cache_that_cannot_be_used_is_reported_and_refused_by_name) {
  const auto nowhere = [] {
    unsetenv("GEMMERY_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
  };
  EXPECT_TRUE(holds_after(nowhere, [] {
    const CacheReport report = cache_report();
    return !report.is_usable && report.refusal.find("HOME") != std::string::npos;
  }));
  EXPECT_TRUE(holds_after(nowhere, [] {
    try {
      list_cache();
    } catch (const Error& error) {
      return error.kind() == ErrorKind::unavailable;
    }
    return false;
  }));
}

TEST_F(CacheView, a_read_only_cache_is_not_tidied) {
  keep(2);
  EXPECT_TRUE(holds([] {
    setenv("GEMMERY_CACHE_READONLY", "1", 1);
    try {
      clear_cache();
    } catch (const Error& error) {
      return error.got().find("GEMMERY_CACHE_READONLY") != std::string::npos &&
             cache_report().is_read_only && cache_report().entries == 2;
    }
    return false;
  }));
}

TEST_F(CacheView, a_variable_that_cannot_be_read_is_an_error_each_time) {
  EXPECT_TRUE(holds_after([] { setenv("GEMMERY_CACHE_MAX_BYTES", "much", 1); },
                          [] {
                            int errors = 0;
                            for (int turn = 0; turn < 2; ++turn) {
                              try {
                                cache_report();
                              } catch (const Error&) {
                                ++errors;
                              }
                            }
                            return errors == 2;
                          }));
}

}  // namespace
}  // namespace gemmery
