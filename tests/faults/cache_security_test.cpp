// SPDX-License-Identifier: Apache-2.0
// RELIABILITY §7.4, S1 to S5 and S16, and the failures F25, F27 and F28: folders that others may
// write into, links, forged entries, changed users. Tests of permissions switch to a user without
// any, which requires root.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gemmery/error.hpp>
#include <gemmery/log.hpp>

#include <cstdlib>
#include <fstream>
#include <functional>

#include "jit/cache_settings.hpp"
#include "tests/faults/sample_code.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::tests {
namespace {

namespace fs = std::filesystem;
using jit::DiskCache;

constexpr uid_t nobody = 65534;
constexpr uid_t somebody_else = 12345;

// Whether `claim` is true in a child with this user id and no privileges; false if it hangs.
bool holds_as(uid_t user, const std::function<bool()>& claim) {
  const auto claim_as_user = [&] {
    const bool is_dropped =
        setgroups(0, nullptr) == 0 && setgid(user) == 0 && setuid(user) == 0 && geteuid() == user;
    return is_dropped && claim();
  };
  return holds_in_child(claim_as_user, 20);
}

// The code is correct in any case. Says whether it came from, or was kept in, the cache.
struct Use {
  bool was_right = false;
  bool is_kept = false;
  std::string warning;
};

Use use_cache(const jit::CacheSettings& settings) {
  Use use;
  set_log_sink([&](LogLevel, std::string_view words) { use.warning = words; }, LogLevel::warning);
  DiskCache first(settings);
  use.was_right = obtain(first, 1);
  DiskCache second(settings);
  use.is_kept = second.find(sample_key(1)).code.has_value();
  set_log_sink({});
  return use;
}

bool is_refused(const std::string& folder, const std::string& words) {
  const Use use = use_cache(settings_at(folder));
  const bool is_told = use.warning.find(words) != std::string::npos;
  if (!is_told) std::printf("told: \"%s\"\n", use.warning.c_str());
  return use.was_right && !use.is_kept && is_told;
}

bool is_used(const std::string& folder) {
  const Use use = use_cache(settings_at(folder));
  if (!use.warning.empty()) std::printf("told: \"%s\"\n", use.warning.c_str());
  return use.was_right && use.is_kept && use.warning.empty();
}

class CacheSecurity : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become an unprivileged user";
    chmod(folder_.path().c_str(), 0755);
  }
  // A folder in the test's own one.
  std::string make(const std::string& name, mode_t mode, uid_t user = nobody,
                   gid_t group = nobody) const {
    const std::string path = folder_ / name;
    fs::create_directories(path);
    EXPECT_EQ(chown(path.c_str(), user, group), 0);
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }

  TemporaryFolder folder_;
};

TEST_F(CacheSecurity, a_folder_of_the_users_own_is_used) {
  const std::string own = make("own", 0700);
  EXPECT_TRUE(holds_as(nobody, [&] { return is_used(own); }));
  EXPECT_TRUE(holds_as(nobody, [&] { return is_used(own + "/made/on/the/way"); }));
}

TEST_F(CacheSecurity, a_folder_that_others_may_write_is_refused) {
  for (const mode_t mode : {0777, 0702, 01777}) {
    const std::string open = make("open", mode);
    EXPECT_TRUE(holds_as(nobody, [&] { return is_refused(open, "may be written by others"); }));
  }
}

TEST_F(CacheSecurity, a_folder_that_a_group_may_write_is_refused_unless_it_is_the_users_own_group) {
  const std::string of_group = make("of_group", 0770, nobody, somebody_else);
  EXPECT_TRUE(holds_as(nobody, [&] { return is_refused(of_group, "may be written by others"); }));
  const std::string of_own_group = make("of_own_group", 0770);
  EXPECT_TRUE(holds_as(nobody, [&] { return is_used(of_own_group); }));
}

TEST_F(CacheSecurity, a_symbolic_link_for_a_folder_is_refused) {
  make("target", 0700);
  const std::string home = make("home", 0700);
  fs::create_directory_symlink(folder_ / "target", home + "/cache");
  EXPECT_EQ(lchown((home + "/cache").c_str(), nobody, nobody), 0);
  EXPECT_TRUE(holds_as(nobody, [&] { return is_refused(home + "/cache", "symbolic link"); }));
}

TEST_F(CacheSecurity, a_parent_that_others_may_write_is_refused_unless_it_is_sticky) {
  const std::string open = make("open", 0777);
  make("open/cache", 0700);
  EXPECT_TRUE(
      holds_as(nobody, [&] { return is_refused(open + "/cache", "/open may be written"); }));
  const std::string of_group = make("of_group", 0770, nobody, somebody_else);
  make("of_group/cache", 0700);
  EXPECT_TRUE(holds_as(nobody, [&] { return is_refused(of_group + "/cache", "may be written"); }));
  const std::string sticky = make("sticky", 01777, 0, 0);
  make("sticky/cache", 0700);
  EXPECT_TRUE(holds_as(nobody, [&] { return is_used(sticky + "/cache"); }));
}

TEST_F(CacheSecurity, folders_of_another_user_are_refused) {
  make("theirs", 0755, somebody_else, somebody_else);
  const std::string inside = make("theirs/mine", 0700);
  EXPECT_TRUE(holds_as(nobody, [&] { return is_refused(inside, "belongs to user 12345"); }));
  const std::string theirs = make("theirs_too", 0755, somebody_else, somebody_else);
  EXPECT_TRUE(holds_as(nobody, [&] { return is_refused(theirs, "belongs to user 12345"); }));
  // root does not trust a user's folder either.
  EXPECT_TRUE(is_refused(theirs, "belongs to user 12345"));
}

TEST_F(CacheSecurity, links_above_the_folder_are_followed_where_the_user_or_root_made_them) {
  const std::string target = make("target", 0700);
  const std::string base = make("base", 0755, 0, 0);
  for (const uid_t owner : {nobody, uid_t{0}}) {
    const std::string link = base + "/link_of_" + std::to_string(owner);
    fs::create_directory_symlink(owner == nobody ? "../target" : target, link);
    EXPECT_EQ(lchown(link.c_str(), owner, owner), 0);
    EXPECT_TRUE(holds_as(nobody, [&] { return is_used(link + "/cache"); }));
  }
  const std::string foreign = base + "/foreign";
  fs::create_directory_symlink(target, foreign);
  EXPECT_EQ(lchown(foreign.c_str(), somebody_else, somebody_else), 0);
  EXPECT_TRUE(
      holds_as(nobody, [&] { return is_refused(foreign + "/cache", "another user's link"); }));
  fs::create_directory_symlink("loop", base + "/loop");
  EXPECT_TRUE(holds_as(nobody, [&] { return is_refused(base + "/loop/cache", "too many links"); }));
}

// --- entries ------------------------------------------------------------------------------------

// Each of these replaces an entry or one of its files. None may cause a hang, be followed or be
// used; afterwards the right code can be kept.
TEST_F(CacheSecurity, links_pipes_and_folders_in_the_place_of_entries_and_files_are_not_used) {
  using Plant = std::function<void(const fs::path&)>;
  const fs::path good = folder_ / "good";
  const std::vector<Plant> plants{
      [&](const fs::path& at) { fs::create_symlink(good, at); },
      [](const fs::path& at) { mkfifo(at.c_str(), 0600); },
      [](const fs::path& at) { fs::create_directory(at); },
      [&](const fs::path& at) {
        if (fs::is_directory(good)) {
          fs::create_directory_symlink(good, at);
        } else {
          fs::create_hard_link(good, at);
        }
      },
  };
  const std::string own = make("own", 0700);
  for (const char* const file : {"", "manifest", "key", "kernel.cubin"}) {
    for (const Plant& plant : plants) {
      EXPECT_TRUE(holds_as(nobody, [&] { return is_used(own); }));
      const fs::path place = entry_path(own, sample_key(1)) / file;
      const fs::path without_slash = *file == '\0' ? place.parent_path() : place;
      fs::remove_all(good);
      fs::rename(without_slash, good);
      plant(without_slash);
      EXPECT_EQ(lchown(without_slash.c_str(), nobody, nobody), 0);
      EXPECT_TRUE(holds_as(nobody, [&] {
        DiskCache cache(settings_at(own));
        return !cache.find(sample_key(1)).code.has_value();
      })) << file;
      EXPECT_TRUE(holds_as(nobody, [&] { return is_used(own); })) << file;
    }
  }
}

TEST_F(CacheSecurity, entries_and_files_that_others_own_or_may_write_are_foreign) {
  const std::string own = make("own", 0700);
  const auto is_foreign = [&] {
    DiskCache cache(settings_at(own));
    return !cache.find(sample_key(1)).code && cache.counters().foreign == 1;
  };
  for (const char* const file : {"", "manifest", "source.cu"}) {
    for (const bool by_owner : {true, false}) {
      EXPECT_TRUE(holds_as(nobody, [&] { return is_used(own); }));
      const fs::path place = entry_path(own, sample_key(1)) / file;
      if (by_owner) {
        EXPECT_EQ(chown(place.c_str(), somebody_else, somebody_else), 0);
        EXPECT_EQ(chmod(place.c_str(), 0755), 0);
      } else {
        EXPECT_EQ(chmod(place.c_str(), 0772), 0);
      }
      EXPECT_TRUE(holds_as(nobody, is_foreign)) << file;
      fs::remove_all(entry_path(own, sample_key(1)));
    }
  }
}

TEST_F(CacheSecurity, a_shared_cache_of_root_is_used_and_one_of_another_user_is_not) {
  const auto finds_in = [&](const std::string& shared) {
    jit::CacheSettings settings = settings_at("");
    settings.own.reset();
    settings.shared = {shared};
    return DiskCache(settings).find(sample_key(1)).code.has_value();
  };
  const std::string of_root = make("of_root", 0755, 0, 0);
  DiskCache(settings_at(of_root)).keep(sample_key(1), sample_code(1));
  for (const auto& file : fs::recursive_directory_iterator(of_root))
    chmod(file.path().c_str(), file.is_directory() ? 0755 : 0644);
  EXPECT_TRUE(holds_as(nobody, [&] { return finds_in(of_root); }));
  for (const auto& file : fs::recursive_directory_iterator(of_root))
    EXPECT_EQ(lchown(file.path().c_str(), somebody_else, somebody_else), 0);
  EXPECT_TRUE(holds_as(nobody, [&] { return !finds_in(of_root); }));
}

// --- places by the environment ------------------------------------------------------------------

struct Variables {
  const char* dir = nullptr;
  const char* xdg = nullptr;
  const char* home = nullptr;
};

void set_or_unset(const char* name, const char* value) {
  value != nullptr ? setenv(name, value, 1) : unsetenv(name);
}

jit::CacheSettings settings_by(const Variables& variables) {
  set_or_unset("GEMMERY_CACHE_DIR", variables.dir);
  set_or_unset("XDG_CACHE_HOME", variables.xdg);
  set_or_unset("HOME", variables.home);
  unsetenv("GEMMERY_CACHE_MAX_BYTES");
  return jit::read_cache_settings();
}

TEST_F(CacheSecurity, homes_that_cannot_be_used_leave_a_program_without_a_cache) {
  const std::string read_only = make("read_only", 0555, 0, 0);
  for (const char* const home : {"/nonexistent", "/", read_only.c_str(), "relative", ""}) {
    EXPECT_TRUE(holds_as(nobody, [&] {
      const Use use = use_cache(settings_by({.home = home}));
      return use.was_right && !use.is_kept && !use.warning.empty();
    })) << home;
  }
  EXPECT_TRUE(holds_as(nobody, [] { return !settings_by({}).own; }));
}

TEST_F(CacheSecurity, root_does_not_make_a_home_that_is_not_there) {
  const std::string home = folder_ / "no/such/home";
  EXPECT_TRUE(holds_as(0, [&] {
    const Use use = use_cache(settings_by({.home = home.c_str()}));
    return use.was_right && !use.is_kept;
  }));
  EXPECT_FALSE(fs::exists(folder_ / "no"));
}

TEST_F(CacheSecurity, two_users_with_one_folder_work_and_the_second_is_told) {
  const std::string shared = make("shared", 01777, 0, 0);
  EXPECT_TRUE(holds_as(nobody, [&] { return is_used(shared + "/cache"); }));
  EXPECT_TRUE(
      holds_as(somebody_else, [&] { return is_refused(shared + "/cache", "Permission denied"); }));
}

TEST(CachePlace, is_the_first_that_is_named_and_absolute) {
  const auto place = [](const Variables& variables) {
    std::string path;
    const pid_t child = fork();
    if (child == 0) {
      const auto settings = settings_by(variables);
      const std::string expected = std::getenv("EXPECTED_PLACE");
      _exit(settings.own && settings.own->path == expected ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  };
  setenv("EXPECTED_PLACE", "/a", 1);
  EXPECT_TRUE(place({.dir = "/a", .xdg = "/b", .home = "/c"}));
  setenv("EXPECTED_PLACE", "/b/gemmery", 1);
  EXPECT_TRUE(place({.xdg = "/b", .home = "/c"}));
  setenv("EXPECTED_PLACE", "/c/.cache/gemmery", 1);
  EXPECT_TRUE(place({.home = "/c"}));
  EXPECT_TRUE(place({.xdg = "relative", .home = "/c"}));
}

TEST(CachePlace, values_that_cannot_be_read_are_refused_by_the_name_of_their_variable) {
  struct Row {
    const char* name;
    const char* value;
  };
  for (const Row& row :
       {Row{"GEMMERY_CACHE_DIR", "relative/cache"}, Row{"GEMMERY_CACHE_SHARED", "/good:bad"},
        Row{"GEMMERY_CACHE_SHARED", "/good::/good"}, Row{"GEMMERY_CACHE_MAX_BYTES", "1GB"},
        Row{"GEMMERY_CACHE_MAX_BYTES", "-1"}, Row{"GEMMERY_CACHE_READONLY", "maybe"}}) {
    const pid_t child = fork();
    if (child == 0) {
      setenv(row.name, row.value, 1);
      try {
        jit::read_cache_settings();
        _exit(1);
      } catch (const Error& error) {
        _exit(error.kind() == ErrorKind::invalid_argument && error.operand() == row.name ? 0 : 2);
      }
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << row.name << "=" << row.value;
  }
}

// Run by the next test: this program, with raised privileges.
TEST(CachePlace, tells_its_place) {
  if (std::getenv("GEMMERY_TEST_TELL") == nullptr) return;
  const auto settings = jit::read_cache_settings();
  std::printf("PLACE %s\n", settings.own ? settings.own->path.c_str() : "none");
}

TEST_F(CacheSecurity, a_program_with_raised_privileges_takes_no_place_from_the_environment) {
  TemporaryFolder disk(fs::temp_directory_path());  // memory is often mounted nosuid
  chmod(disk.path().c_str(), 0755);
  const std::string program = disk / "raised";
  fs::copy_file("/proc/self/exe", program);
  EXPECT_EQ(chmod(program.c_str(), 04755), 0);
  int channel[2];
  ASSERT_EQ(pipe(channel), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(channel[1], STDOUT_FILENO);
    const bool is_dropped = setgid(nobody) == 0 && setuid(nobody) == 0 && chdir("/") == 0;
    setenv("GEMMERY_TEST_TELL", "1", 1);
    setenv("GEMMERY_CACHE_DIR", "/tmp/hostile", 1);
    unsetenv("GTEST_OUTPUT");
    if (is_dropped)
      execl(program.c_str(), "raised", "--gtest_filter=CachePlace.tells_its_place", nullptr);
    _exit(1);
  }
  close(channel[1]);
  std::string told;
  char part[512];
  for (ssize_t count; (count = read(channel[0], part, sizeof part)) > 0;)
    told.append(part, static_cast<std::size_t>(count));
  close(channel[0]);
  waitpid(child, nullptr, 0);
  EXPECT_NE(told.find("PLACE none"), std::string::npos) << told;
}

}  // namespace
}  // namespace gemmery::tests
