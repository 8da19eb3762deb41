// SPDX-License-Identifier: Apache-2.0
// RELIABILITY G15: entries whose files were changed in any way are never used.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/faults/sample_code.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::tests {
namespace {

namespace fs = std::filesystem;
using jit::DiskCache;

constexpr const char* entry_file_names[] = {"manifest", "key", "source.cu", "kernel.cubin", "log"};

std::string read_text(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

class CacheMutation : public testing::Test {
 protected:
  void keep(int number) {
    DiskCache(settings_at(cache())).keep(sample_key(number), sample_code(number));
  }
  std::string cache() const { return folder_ / "cache"; }
  fs::path entry(int number) const { return entry_path(cache(), sample_key(number)); }

  // Expects a miss with its reason counted; afterwards the entry can be kept again.
  void expect_miss_and_recovery(int number, std::uint64_t CacheCounters::*reason) {
    DiskCache changed(settings_at(cache()));
    EXPECT_FALSE(changed.find(sample_key(number)).code);
    EXPECT_EQ(changed.counters().*reason, 1U);
    keep(number);
    const auto found = DiskCache(settings_at(cache())).find(sample_key(number));
    ASSERT_TRUE(found.code);
    EXPECT_TRUE(is_sample(*found.code, number));
  }

  TemporaryFolder folder_;
};

TEST_F(CacheMutation, a_flipped_bit_anywhere_is_damage) {
  std::mt19937_64 random(random_seed());
  const bool is_soak = std::getenv("GEMMERY_SOAK") != nullptr;
  int mutations = 0;
  keep(1);
  for (const char* const file : entry_file_names) {
    const std::string text = read_text(entry(1) / file);
    const std::size_t step = is_soak ? 1 : text.size() / 25 + 1;
    for (std::size_t position = random() % step; position < text.size(); position += step) {
      std::string changed = text;
      changed[position] = static_cast<char>(changed[position] ^ (1 << (random() % 8)));
      write_text(entry(1) / file, changed);
      DiskCache reader(settings_at(cache()));
      EXPECT_FALSE(reader.find(sample_key(1)).code) << file << " at " << position;
      keep(1);
      ++mutations;
    }
  }
  std::printf("%d flipped bits\n", mutations);
  EXPECT_TRUE(DiskCache(settings_at(cache())).find(sample_key(1)).code);
}

TEST_F(CacheMutation, a_truncated_or_longer_file_is_damage) {
  for (const char* const file : entry_file_names) {
    keep(1);
    const std::string text = read_text(entry(1) / file);
    std::vector<std::string> others{text + "x", text + text};
    for (std::size_t size = 0; size < text.size(); size += 512)
      others.push_back(text.substr(0, size));
    for (const std::string& changed : others) {
      write_text(entry(1) / file, changed);
      expect_miss_and_recovery(1, &CacheCounters::damaged);
    }
  }
}

TEST_F(CacheMutation, a_missing_file_is_damage) {
  for (const char* const file : entry_file_names) {
    keep(1);
    fs::remove(entry(1) / file);
    expect_miss_and_recovery(1, &CacheCounters::damaged);
  }
}

TEST_F(CacheMutation, two_entries_under_each_others_names_are_both_misses) {
  keep(1);
  keep(2);
  fs::create_directories(entry(1).parent_path());
  fs::rename(entry(1), folder_ / "aside");
  fs::rename(entry(2), entry(1));
  fs::rename(folder_ / "aside", entry(2));
  expect_miss_and_recovery(1, &CacheCounters::damaged);
  expect_miss_and_recovery(2, &CacheCounters::damaged);
}

TEST_F(CacheMutation, files_of_two_entries_mixed_are_damage) {
  for (const char* const file : {"manifest", "source.cu", "kernel.cubin", "log"}) {
    keep(1);
    keep(2);
    fs::copy_file(entry(2) / file, entry(1) / file, fs::copy_options::overwrite_existing);
    expect_miss_and_recovery(1, &CacheCounters::damaged);
  }
}

// An attacker may find a second key with the same hash. The full text is compared, so this is a
// miss. Tested without a collision, by a request of a key that the entry does not have.
TEST_F(CacheMutation, an_entry_under_the_right_hash_with_another_key_is_foreign) {
  keep(1);
  const auto own = DiskCache(settings_at(cache())).open_own();
  jit::CacheRoot::Entry stored = own.root->examine(jit::entry_name(sample_key(1)));
  ASSERT_EQ(stored.state, jit::EntryState::sound);
  const jit::CacheKey moved{.conditions = sample_key(1).conditions + sample_key(1).source,
                            .source = ""};
  ASSERT_EQ(jit::entry_name(moved),
            jit::entry_name(sample_key(1)));  // the same text, split at another place
  DiskCache cache_of_moved(settings_at(cache()));
  EXPECT_FALSE(cache_of_moved.find(moved).code);
  EXPECT_EQ(cache_of_moved.counters().foreign, 1U);
  EXPECT_TRUE(DiskCache(settings_at(cache())).find(sample_key(1)).code);
}

TEST_F(CacheMutation, an_entry_of_another_format_is_counted_as_such_and_replaced) {
  keep(1);
  write_text(entry(1) / "manifest", "gemmery cache entry 2\nsomething else\n");
  expect_miss_and_recovery(1, &CacheCounters::other_version);
}

TEST_F(CacheMutation, random_bytes_for_a_manifest_are_damage) {
  std::mt19937_64 random(random_seed());
  for (int turn = 0; turn < 200; ++turn) {
    std::string text(random() % 600, '\0');
    for (char& byte : text) byte = static_cast<char>(random());
    EXPECT_FALSE(jit::parse_manifest(text));
  }
}

TEST_F(CacheMutation, files_that_are_no_entries_are_passed_over) {
  keep(1);
  for (const char* const name : {"zz", "01/xy", "01/02/short", "tmp/garbage", "lost+found"})
    fs::create_directories(fs::path(cache()) / "v1" / name);
  write_text(fs::path(cache()) / "v1/tmp/kernel.cubin.tmp", "half");
  write_text(fs::path(cache()) / "v1/ab", "a file where a folder is expected");
  const auto own = DiskCache(settings_at(cache())).open_own();
  EXPECT_EQ(own.root->list().size(), 1U);
  EXPECT_EQ(DiskCache::trim(*own.root, 0).entries, 1);
}

}  // namespace
}  // namespace gemmery::tests
