// SPDX-License-Identifier: Apache-2.0
// The cache on disk without failures: entries are found, by which processes, for how long, and how
// many are kept.
#include "jit/disk_cache.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gemmery/log.hpp>

#include <fstream>
#include <latch>
#include <set>
#include <thread>

#include "tests/faults/sample_code.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::jit {
namespace {

using tests::entry_path;
using tests::is_sample;
using tests::obtain;
using tests::sample_code;
using tests::sample_key;
using tests::settings_at;

class Disk : public testing::Test {
 protected:
  DiskCache make_cache() const { return DiskCache(settings_at(folder_ / "cache")); }
  std::int64_t bytes_in_use() const {
    std::int64_t bytes = 0;
    for (const EntryFacts& entry : make_cache().open_own().root->list()) bytes += entry.bytes;
    return bytes;
  }
  // Sets the entry's file times to some time ago.
  void age(int number, std::chrono::minutes age) const {
    const auto manifest = entry_path(folder_ / "cache", sample_key(number)) / "manifest";
    std::filesystem::last_write_time(manifest, std::filesystem::file_time_type::clock::now() - age);
  }

  tests::TemporaryFolder folder_;
};

TEST_F(Disk, what_one_object_kept_another_finds_whole) {
  make_cache().keep(sample_key(7), sample_code(7));
  DiskCache cache = make_cache();
  const auto found = cache.find(sample_key(7));
  ASSERT_TRUE(found.code);
  EXPECT_TRUE(is_sample(*found.code, 7));
  EXPECT_EQ(found.code->compile_ms, 0);
  EXPECT_EQ(found.claim, nullptr);
  EXPECT_EQ(cache.counters().hits, 1U);
  EXPECT_GT(cache.counters().bytes_read, 3000U);
}

TEST_F(Disk, ptx_is_kept_as_text) {
  CompiledCode code;
  code.ptx = ".version 9.0\n.entry kernel";
  make_cache().keep(sample_key(1), code);
  const auto found = make_cache().find(sample_key(1));
  ASSERT_TRUE(found.code);
  EXPECT_EQ(found.code->ptx, code.ptx);
  EXPECT_TRUE(std::filesystem::exists(entry_path(folder_ / "cache", sample_key(1)) / "kernel.ptx"));
}

TEST_F(Disk, an_entry_is_a_folder_of_readable_files_for_its_owner_alone) {
  make_cache().keep(sample_key(3), sample_code(3));
  const std::filesystem::path entry = entry_path(folder_ / "cache", sample_key(3));
  std::set<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(entry)) {
    names.insert(file.path().filename());
    EXPECT_EQ(file.status().permissions(), std::filesystem::perms(0600)) << file.path();
  }
  EXPECT_EQ(names, (std::set<std::string>{"key", "source.cu", "kernel.cubin", "log", "manifest"}));
  EXPECT_EQ(std::filesystem::status(entry).permissions(), std::filesystem::perms(0700));
}

TEST_F(Disk, a_key_that_differs_in_one_byte_is_absent) {
  DiskCache cache = make_cache();
  cache.keep(sample_key(1), sample_code(1));
  for (const bool in_source : {false, true}) {
    CacheKey key = sample_key(1);
    std::string& text = in_source ? key.source : key.conditions;
    text[tests::random_seed() % text.size()] ^= 1;
    EXPECT_FALSE(cache.find(key).code);
  }
  EXPECT_EQ(cache.counters().absent, 2U);
}

TEST_F(Disk, the_least_recently_used_entries_make_room) {
  CacheSettings settings = settings_at(folder_ / "cache");
  settings.most_bytes = 40'000;
  DiskCache cache(settings);
  for (int number = 0; number < 8; ++number) {
    cache.keep(sample_key(number), sample_code(number));
    age(number, std::chrono::minutes(100 - number));
  }
  ASSERT_TRUE(cache.find(sample_key(0)).code);  // sets its time
  for (int number = 8; number < 30; ++number) {
    cache.keep(sample_key(number), sample_code(number));
    EXPECT_LE(bytes_in_use(), settings.most_bytes) << number;
    if (number == 12) {
      EXPECT_TRUE(cache.find(sample_key(0)).code);
    }
  }
  EXPECT_FALSE(cache.find(sample_key(1)).code);
  EXPECT_TRUE(cache.find(sample_key(29)).code);
  EXPECT_GT(cache.counters().evicted, 10U);
}

// RELIABILITY G12: after the clock was set back, earlier entries have times in the future. They
// must not be evicted last.
TEST_F(Disk, a_use_that_is_yet_to_come_saves_no_entry) {
  CacheSettings settings = settings_at(folder_ / "cache");
  settings.most_bytes = 40'000;
  DiskCache cache(settings);
  for (int number = 0; number < 8; ++number) {
    cache.keep(sample_key(number), sample_code(number));
    age(number, -std::chrono::hours(24 * 365));
  }
  ASSERT_TRUE(cache.find(sample_key(0)).code);  // used now, by the corrected clock
  for (int number = 8; number < 16; ++number) {
    cache.keep(sample_key(number), sample_code(number));
    age(number, std::chrono::minutes(100 - number));
  }
  for (int number = 16; cache.counters().evicted == 0; ++number)
    cache.keep(sample_key(number), sample_code(number));
  EXPECT_TRUE(cache.find(sample_key(0)).code);
  for (int number = 8; number < 16; ++number) EXPECT_TRUE(cache.find(sample_key(number)).code);
}

TEST_F(Disk, an_entry_larger_than_the_cache_is_not_kept) {
  CacheSettings settings = settings_at(folder_ / "cache");
  settings.most_bytes = 1000;
  DiskCache cache(settings);
  cache.keep(sample_key(1), sample_code(1));
  EXPECT_EQ(cache.counters().not_kept, 1U);
  EXPECT_FALSE(cache.find(sample_key(1)).code);
}

TEST_F(Disk, a_lost_ledger_is_made_again_by_counting) {
  CacheSettings settings = settings_at(folder_ / "cache");
  settings.most_bytes = 20'000;
  for (int number = 0; number < 20; ++number) {
    DiskCache cache(settings);
    cache.keep(sample_key(number), sample_code(number));
    std::ofstream(folder_ / "cache/v1/ledger") << std::string(number * 700U, 'x');
    EXPECT_LE(bytes_in_use(), settings.most_bytes);
  }
}

TEST_F(Disk, the_ledger_adds_the_counters_of_all_processes) {
  for (int process = 0; process < 3; ++process) {
    DiskCache cache = make_cache();
    ASSERT_TRUE(obtain(cache, 1));
  }
  const LedgerState state =
      read_ledger(make_cache().open_own().root->folder(), platform::Owner::user);
  EXPECT_EQ(state.counters.hits, 2U);
  EXPECT_EQ(state.counters.absent, 1U);
  EXPECT_EQ(state.counters.kept, 1U);
  EXPECT_EQ(state.bytes, bytes_in_use());
}

TEST_F(Disk, what_is_discarded_makes_room_for_other_code_of_the_key) {
  DiskCache cache = make_cache();
  cache.keep(sample_key(1), sample_code(1));
  cache.keep(sample_key(2), sample_code(2));
  cache.discard(sample_key(1));
  cache.discard(sample_key(3));  // does not exist
  EXPECT_FALSE(make_cache().find(sample_key(1)).code);
  cache.keep(sample_key(1), sample_code(7));
  const auto found = make_cache().find(sample_key(1));
  ASSERT_TRUE(found.code);
  EXPECT_TRUE(found.code->was_kept);
  EXPECT_TRUE(is_sample(*found.code, 7));
  EXPECT_TRUE(make_cache().find(sample_key(2)).code);
  const LedgerState state =
      read_ledger(make_cache().open_own().root->folder(), platform::Owner::user);
  EXPECT_EQ(state.bytes, bytes_in_use());
}

TEST_F(Disk, a_read_only_cache_is_searched_and_never_changed) {
  make_cache().keep(sample_key(1), sample_code(1));
  age(1, std::chrono::minutes(500));
  const auto manifest = entry_path(folder_ / "cache", sample_key(1)) / "manifest";
  const auto before = std::filesystem::last_write_time(manifest);
  CacheSettings settings = settings_at(folder_ / "cache");
  settings.is_read_only = true;
  settings.own->may_be_made = false;
  DiskCache cache(settings);
  EXPECT_TRUE(cache.find(sample_key(1)).code);
  EXPECT_FALSE(cache.find(sample_key(2)).code);
  cache.keep(sample_key(2), sample_code(2));
  EXPECT_FALSE(cache.find(sample_key(2)).code);
  cache.discard(sample_key(1));
  EXPECT_TRUE(cache.find(sample_key(1)).code);
  EXPECT_EQ(std::filesystem::last_write_time(manifest), before);
}

TEST_F(Disk, shared_caches_are_searched_after_the_own_one) {
  DiskCache(settings_at(folder_ / "shared")).keep(sample_key(1), sample_code(1));
  CacheSettings settings = settings_at(folder_ / "cache");
  settings.shared = {folder_ / "nowhere", folder_ / "shared"};
  DiskCache cache(settings);
  ASSERT_TRUE(cache.find(sample_key(1)).code);
  EXPECT_FALSE(std::filesystem::exists(entry_path(folder_ / "cache", sample_key(1))));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "nowhere"));
}

TEST_F(Disk, shared_caches_serve_where_there_is_no_own_one) {
  DiskCache(settings_at(folder_ / "shared")).keep(sample_key(1), sample_code(1));
  CacheSettings settings = settings_at("");
  settings.own.reset();
  settings.shared = {folder_ / "shared"};
  EXPECT_TRUE(DiskCache(settings).find(sample_key(1)).code);
  DiskCache(settings).discard(sample_key(1));
  EXPECT_TRUE(DiskCache(settings).find(sample_key(1)).code);
}

TEST_F(Disk, a_bound_of_no_bytes_switches_it_off_without_a_word) {
  CacheSettings settings = settings_at(folder_ / "cache");
  settings.most_bytes = 0;
  int words = 0;
  set_log_sink([&](LogLevel, std::string_view) { ++words; }, LogLevel::info);
  DiskCache cache(settings);
  EXPECT_TRUE(obtain(cache, 1));
  EXPECT_FALSE(cache.find(sample_key(1)).code);
  set_log_sink({});
  EXPECT_EQ(words, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "cache"));
}

TEST_F(Disk, leftovers_of_interrupted_processes_are_swept_when_they_are_old) {
  make_cache().keep(sample_key(1), sample_code(1));
  const std::filesystem::path aside = folder_ / "cache/v1/tmp";
  for (const char* const name : {"old", "to come", "new"}) {
    std::filesystem::create_directories(aside / name / "inside");
    std::ofstream(aside / name / "inside" / "file") << "half";
  }
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(aside / "old", now - std::chrono::hours(2));
  std::filesystem::last_write_time(aside / "to come", now + std::chrono::hours(2));
  EXPECT_EQ(make_cache().open_own().root->list().size(), 1U);
  make_cache().keep(sample_key(2), sample_code(2));
  EXPECT_FALSE(std::filesystem::exists(aside / "old"));
  EXPECT_FALSE(std::filesystem::exists(aside / "to come"));
  EXPECT_TRUE(std::filesystem::exists(aside / "new"));
}

TEST_F(Disk, many_entries_spread_over_folders) {
  const int entries = std::getenv("GEMMERY_SOAK") != nullptr ? 100'000 : 300;
  DiskCache cache = make_cache();
  for (int number = 0; number < entries; ++number)
    cache.keep(sample_key(number), sample_code(number, 8));
  EXPECT_EQ(cache.open_own().root->list().size(), static_cast<std::size_t>(entries));
  for (const auto& outer : std::filesystem::directory_iterator(folder_ / "cache/v1")) {
    if (outer.is_directory()) {
      EXPECT_LE(std::distance(std::filesystem::directory_iterator(outer), {}), 256);
    }
  }
}

TEST_F(Disk, threads_make_one_tree_at_once) {
  DiskCache cache = make_cache();
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 24; ++thread) {
      threads.emplace_back([&cache, thread] {
        for (int number = 0; number < 8; ++number)
          EXPECT_TRUE(obtain(cache, (thread * 5 + number) % 16));
      });
    }
  }
  EXPECT_EQ(cache.counters().kept + cache.counters().duplicates, 16U);
}

TEST_F(Disk, a_reader_gets_whole_entries_while_they_are_removed_and_made_again) {
  DiskCache cache = make_cache();
  std::jthread remover([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (const auto own = cache.open_own(); own.root) DiskCache::trim(*own.root, 0);
    }
  });
  for (int turn = 0; turn < 300; ++turn) EXPECT_TRUE(obtain(cache, turn % 3));
}

TEST_F(Disk, the_holder_of_a_claim_is_waited_for_and_its_code_taken) {
  DiskCache cache = make_cache();
  CodeCache::Found first = cache.find(sample_key(1));
  ASSERT_NE(first.claim, nullptr);
  std::latch begun(1);
  std::jthread other([&] {
    begun.count_down();
    const CodeCache::Found second = cache.find(sample_key(1));
    EXPECT_TRUE(second.code);
    EXPECT_EQ(second.claim, nullptr);
  });
  begun.wait();  // on a busy machine a thread may begin late
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  cache.keep(sample_key(1), sample_code(1));
  first.claim.reset();
  other.join();
  EXPECT_EQ(cache.counters().waits, 1U);
}

TEST_F(Disk, a_holder_that_is_too_slow_is_not_waited_for) {
  CacheSettings settings = settings_at(folder_ / "cache");
  settings.patience = std::chrono::milliseconds(100);
  DiskCache cache(settings);
  const CodeCache::Found first = cache.find(sample_key(1));
  const CodeCache::Found second = cache.find(sample_key(1));
  EXPECT_NE(first.claim, nullptr);
  EXPECT_EQ(second.claim, nullptr);
  EXPECT_EQ(cache.counters().timeouts, 1U);
}

TEST_F(Disk, a_long_wait_for_a_claim_is_logged_with_its_holder_and_kernel) {
  CacheSettings settings = settings_at(folder_ / "cache");
  settings.patience = std::chrono::milliseconds(150);
  settings.until_told = std::chrono::milliseconds(20);
  std::string words;
  set_log_sink([&](LogLevel, std::string_view message) { words = message; }, LogLevel::info);
  DiskCache cache(settings);
  const CodeCache::Found first = cache.find(sample_key(1));
  cache.find(sample_key(1));
  set_log_sink({});
  EXPECT_NE(words.find("process " + std::to_string(getpid())), std::string::npos) << words;
  EXPECT_NE(words.find("kernel"), std::string::npos) << words;
}

TEST_F(Disk, a_damaged_entry_of_a_read_only_cache_is_left_as_it_is) {
  make_cache().keep(sample_key(1), sample_code(1));
  const auto log = entry_path(folder_ / "cache", sample_key(1)) / "log";
  std::ofstream(log) << "x";
  CacheSettings settings = settings_at(folder_ / "cache");
  settings.is_read_only = true;
  DiskCache cache(settings);
  EXPECT_FALSE(cache.find(sample_key(1)).code);
  EXPECT_EQ(cache.counters().damaged, 1U);
  EXPECT_TRUE(std::filesystem::exists(log));
}

TEST_F(Disk, a_holder_that_is_killed_is_waited_for_no_longer) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    DiskCache cache = make_cache();
    const CodeCache::Found found = cache.find(sample_key(1));
    const char byte = found.claim != nullptr ? 'y' : 'n';
    if (write(ready[1], &byte, 1) == 1) pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  std::jthread killer([child] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    kill(child, SIGKILL);
  });
  DiskCache cache = make_cache();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_NE(cache.find(sample_key(1)).claim, nullptr);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(Disk, a_long_wait_tells_who_is_waited_for) {
  const auto own = make_cache().open_own();
  const auto locks = own.root->lock_folder();
  const auto held = platform::FileLock::acquire(*locks, "ab", {});
  ASSERT_TRUE(held);
  std::string told;
  const platform::FileLock::Patience patience{
      .most = std::chrono::milliseconds(200),
      .until_told = std::chrono::milliseconds(50),
      .tell = [&](auto, const std::string& holder) { told = holder; }};
  EXPECT_FALSE(platform::FileLock::acquire(*locks, "ab", patience));
  EXPECT_EQ(told, "process " + std::to_string(getpid()));
}

// --- the manifest and the ledger as text --------------------------------------------------------

TEST(Entry, every_changed_byte_of_a_manifest_is_noticed) {
  const std::string text = encode_entry(sample_key(5), sample_code(5)).manifest;
  ASSERT_TRUE(parse_manifest(text));
  for (std::size_t position = 0; position < text.size(); ++position) {
    for (const int bit : {0, 3, 7}) {
      std::string changed = text;
      changed[position] = static_cast<char>(changed[position] ^ (1 << bit));
      EXPECT_FALSE(parse_manifest(changed)) << position;
    }
    EXPECT_FALSE(parse_manifest(text.substr(0, position)));
  }
  EXPECT_FALSE(parse_manifest(text + "\n"));
}

TEST(Entry, each_state_has_words_of_its_own) {
  std::set<std::string> words;
  for (const EntryState state :
       {EntryState::sound, EntryState::absent, EntryState::damaged, EntryState::foreign,
        EntryState::other_version, EntryState::unreadable})
    words.insert(describe(state));
  EXPECT_EQ(words.size(), 6U);
}

TEST(Entry, a_manifest_of_another_format_is_told_from_a_damaged_one) {
  EXPECT_TRUE(is_of_other_version("gemmery cache entry 2\nwhatever"));
  EXPECT_FALSE(is_of_other_version(encode_entry(sample_key(1), sample_code(1)).manifest));
  EXPECT_FALSE(is_of_other_version("something else"));
}

TEST(Ledger, reads_what_it_prints_and_nothing_else) {
  LedgerState state{.bytes = 12345, .counters = {}};
  state.counters.hits = 42;
  state.counters.bytes_written = std::uint64_t{1} << 40;
  const std::string text = print_ledger(state);
  EXPECT_EQ(parse_ledger(text).bytes, 12345);
  EXPECT_EQ(print_ledger(parse_ledger(text)), text);
  for (std::size_t position = 0; position < text.size(); ++position) {
    std::string changed = text;
    changed[position] = static_cast<char>(changed[position] ^ 1);
    EXPECT_FALSE(parse_ledger(changed).bytes) << position;
  }
}

}  // namespace
}  // namespace gemmery::jit
