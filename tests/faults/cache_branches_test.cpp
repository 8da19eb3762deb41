// SPDX-License-Identifier: Apache-2.0
// The cache with rare results of system calls that no other test covers.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gemmery/error.hpp>
#include <gemmery/log.hpp>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>

#include "jit/build_dump.hpp"
#include "jit/cancellation.hpp"
#include "jit/compiler_choice.hpp"
#include "platform/environment.hpp"
#include "platform/file_identity.hpp"
#include "platform/file_system.hpp"
#include "tests/faults/failing_calls.hpp"
#include "tests/faults/sample_code.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::tests {
namespace {

namespace fs = std::filesystem;
using jit::CacheRoot;
using jit::DiskCache;
using jit::EntryState;
using platform::FileCalls;
using platform::Folder;

// Limits the size of this process's files.
bool limits_files_to(rlim_t bytes) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{bytes, bytes};
  return setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

class CacheBranches : public testing::Test {
 protected:
  ~CacheBranches() override { clear_fault_plan(); }

  std::string cache() const { return folder_ / "cache"; }
  jit::CacheSettings settings() const { return settings_at(cache()); }
  void keep(int number) const {
    DiskCache(settings()).keep(sample_key(number), sample_code(number));
  }
  CacheRoot root() const { return *std::move(DiskCache(settings()).open_own().root); }
  Folder open(const std::string& path,
              const FileCalls& calls = platform::system_file_calls()) const {
    return Folder({::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), calls});
  }
  // Whether a claim about the process's cache, which is this one, is true in a child process.
  bool holds_for_process_cache(const std::function<bool()>& claim) const {
    return holds_in_child([&] {
      setenv("GEMMERY_CACHE_DIR", cache().c_str(), 1);
      setenv("GEMMERY_CACHE_MAX_BYTES", "1000000", 1);
      return claim();
    });
  }

  TemporaryFolder folder_;
};

// --- entries ------------------------------------------------------------------------------------

TEST_F(CacheBranches, a_manifest_that_claims_a_file_too_large_to_read_is_damage) {
  keep(1);
  const fs::path place = entry_path(cache(), sample_key(1)) / "manifest";
  std::string text = jit::encode_entry(sample_key(1), sample_code(1)).manifest;
  const std::size_t at = text.find("kernel.cubin ") + std::strlen("kernel.cubin ");
  text.replace(at, text.find(' ', at) - at, "99999999999");
  const std::string body = text.substr(0, text.rfind("digest "));
  std::ofstream(place) << body << "digest " << jit::digest_of(body) << "\n";
  EXPECT_EQ(root().examine(jit::entry_name(sample_key(1))).state, EntryState::damaged);
}

TEST_F(CacheBranches, keys_whose_lines_and_source_join_to_the_same_text_are_not_mixed_up) {
  const jit::CacheKey key = sample_key(1);
  const jit::CacheKey shifted{.conditions = key.conditions + key.source.substr(0, 3),
                              .source = key.source.substr(3)};
  EXPECT_EQ(jit::entry_name(key), jit::entry_name(shifted));
  EXPECT_FALSE(key == shifted);
  EXPECT_FALSE((key == jit::CacheKey{.conditions = key.conditions, .source = "other"}));
  keep(1);
  DiskCache cache(settings());
  EXPECT_FALSE(cache.find(shifted).code);
  EXPECT_EQ(cache.counters().foreign, 1U);
  EXPECT_TRUE(cache.find(key).code);
}

TEST_F(CacheBranches, a_file_or_a_dangling_link_with_the_name_of_an_entry_is_listed_and_removed) {
  keep(1);
  for (const bool is_link : {false, true}) {
    const fs::path place = entry_path(cache(), sample_key(2));
    fs::create_directories(place.parent_path());
    is_link ? fs::create_symlink("nowhere", place) : void(std::ofstream(place) << "x");
    EXPECT_EQ(root().list().size(), 2U);
    EXPECT_EQ(root().examine(jit::entry_name(sample_key(2))).state, EntryState::foreign);
    EXPECT_TRUE(holds_for_process_cache([] { return verify_cache().faulty.size() == 1; }));
    EXPECT_TRUE(holds_for_process_cache([] { return prune_cache(1'000'000).entries == 1; }));
    EXPECT_EQ(root().list().size(), 1U);
  }
}

TEST_F(CacheBranches, what_has_no_name_of_an_entry_is_passed_over) {
  keep(1);
  for (const char* const name : {"zz", "abc", "0g"})
    fs::create_directories(cache() + "/v1/" + name);
  for (const char* const name : {"00/zz", "00/0", "00/11/short"})
    fs::create_directories(cache() + "/v1/" + name);
  std::ofstream(cache() + "/v1/11") << "a file";
  std::ofstream(cache() + "/v1/00/22") << "a file";
  EXPECT_EQ(root().list().size(), 1U);
}

TEST_F(CacheBranches, entries_that_are_nowhere_are_not_removed) {
  EXPECT_FALSE(root().remove(jit::entry_name(sample_key(1))));
  keep(1);
  const std::string name = jit::entry_name(sample_key(1));
  fs::rename(entry_path(cache(), sample_key(1)).parent_path(), folder_ / "aside");
  fs::create_directories(cache() + "/v1/" + name.substr(0, 2));
  EXPECT_FALSE(root().remove(name));
  EXPECT_FALSE(root().remove(name, 12345));
}

TEST_F(CacheBranches, of_a_number_that_is_another_one_nothing_is_removed) {
  keep(1);
  const std::string name = jit::entry_name(sample_key(1));
  EXPECT_FALSE(root().remove(name, 1));
  fs::rename(entry_path(cache(), sample_key(1)), folder_ / "aside");
  EXPECT_FALSE(root().remove(name, 1));
}

// Every error in each call on an entry, wherever the call occurs.
TEST_F(CacheBranches, errors_of_calls_on_an_entry_are_told_apart) {
  struct Row {
    int error;
    EntryState state;
  };
  keep(1);
  for (const Row& row : {Row{ENOENT, EntryState::absent}, Row{EACCES, EntryState::foreign},
                         Row{ENOTDIR, EntryState::foreign}, Row{ELOOP, EntryState::foreign},
                         Row{EIO, EntryState::unreadable}}) {
    const auto opened = DiskCache(settings(), failing_calls()).open_own();
    ASSERT_TRUE(opened.root);
    for (long first = 0; first < 3; ++first) {
      set_fault_plan({.error = row.error, .first = first, .only = "openat"});
      EXPECT_EQ(opened.root->examine(jit::entry_name(sample_key(1))).state, row.state);
    }
    for (long first = 3; first < 8; ++first) {
      set_fault_plan({.error = row.error, .first = first, .only = "openat"});
      const EntryState state = opened.root->examine(jit::entry_name(sample_key(1))).state;
      EXPECT_EQ(state, row.error == ENOENT ? EntryState::damaged : row.state);
    }
    clear_fault_plan();
  }
}

TEST_F(CacheBranches, facts_that_cannot_be_had_of_a_folder_make_it_unreadable) {
  keep(1);
  const auto opened = DiskCache(settings(), failing_calls()).open_own();
  set_fault_plan({.error = EIO, .count = 1'000'000, .only = "fstat"});
  const CacheRoot::Entry entry = opened.root->examine(jit::entry_name(sample_key(1)));
  EXPECT_EQ(entry.state, EntryState::unreadable);
  EXPECT_EQ(entry.number, 0U);
}

TEST_F(CacheBranches, any_error_at_any_call_of_keeping_leaves_nothing_or_the_whole) {
  const jit::EntryFiles files = jit::encode_entry(sample_key(1), sample_code(1));
  for (const int error : {EEXIST, ENOTEMPTY, ENOENT, ENOTDIR, ELOOP, EIO}) {
    for (long first = 0;; ++first) {
      fs::remove_all(cache());
      const auto opened = DiskCache(settings(), failing_calls()).open_own();
      ASSERT_TRUE(opened.root);
      set_fault_plan({.error = error, .first = first, .only = {}});
      opened.root->keep(jit::entry_name(sample_key(1)), files);
      const bool is_past_the_end = calls_made() <= first;
      clear_fault_plan();
      const EntryState state = root().examine(jit::entry_name(sample_key(1))).state;
      EXPECT_TRUE(state == EntryState::sound || state == EntryState::absent)
          << error << " " << first;
      if (is_past_the_end) break;
    }
  }
}

TEST_F(CacheBranches, any_error_at_any_call_of_stamping_listing_and_sweeping_is_no_error) {
  keep(1);
  keep(2);
  const auto opened = DiskCache(settings(), failing_calls()).open_own();
  const fs::path manifest = entry_path(cache(), sample_key(1)) / "manifest";
  const std::function<void()> works[] = {
      [&] { opened.root->stamp(jit::entry_name(sample_key(1))); }, [&] { opened.root->list(); },
      [&] {
        fs::create_directories(cache() + "/v1/tmp/left/over");
        opened.root->sweep(std::chrono::seconds(-1));
      },
      [&] { jit::read_ledger(opened.root->folder(), platform::Owner::user); }};
  for (const auto& work : works) {
    for (long first = 0;; ++first) {
      fs::last_write_time(manifest, fs::file_time_type::clock::now() - std::chrono::hours(2));
      set_fault_plan({.error = EIO, .first = first, .only = {}});
      work();
      const bool is_past_the_end = calls_made() <= first;
      clear_fault_plan();
      if (is_past_the_end) break;
    }
  }
  EXPECT_EQ(root().list().size(), 2U);
}

// --- the ledger, the room and the claims --------------------------------------------------------

TEST_F(CacheBranches, without_a_ledger_that_can_be_opened_codes_are_kept_and_found) {
  keep(1);
  fs::remove(cache() + "/v1/ledger");
  EXPECT_TRUE(holds_for_process_cache(
      [] { return cache_report().counters.kept == 0 && cache_report().entries == 1; }));
  fs::create_directory(cache() + "/v1/ledger");
  DiskCache cache(settings());
  cache.keep(sample_key(2), sample_code(2));
  cache.keep(sample_key(2), sample_code(2));  // an earlier entry, whose space cannot be freed
  EXPECT_TRUE(cache.find(sample_key(2)).code);
  EXPECT_TRUE(holds_for_process_cache([] { return clear_cache().entries == 2; }));
}

TEST_F(CacheBranches, a_ledger_that_cannot_grow_is_lost_and_nothing_else) {
  fs::create_directories(cache() + "/v1");
  EXPECT_TRUE(holds_in_child([&] {
    if (!limits_files_to(100)) return false;
    auto ledger = jit::CacheLedger::acquire(root().folder(), std::chrono::seconds(1));
    if (!ledger) return false;
    ledger->write({.bytes = 5, .counters = {}});
    ledger.reset();
    DiskCache cache(settings());
    cache.keep(sample_key(1), sample_code(1));  // space is needed and cannot be freed
    return cache.counters().not_kept == 1 &&
           !jit::read_ledger(root().folder(), platform::Owner::user).bytes;
  }));
}

TEST_F(CacheBranches, where_nothing_can_be_put_aside_nothing_is_removed) {
  keep(1);
  fs::remove_all(cache() + "/v1/tmp");
  std::ofstream(cache() + "/v1/tmp") << "a file";
  std::ofstream(entry_path(cache(), sample_key(1)) / "log") << "damage";
  EXPECT_TRUE(holds_for_process_cache([] {
    return prune_cache(0).entries == 0 && clear_cache().entries == 0 &&
           verify_cache().faulty.size() == 1;
  }));
  DiskCache cache(settings());
  EXPECT_FALSE(cache.find(sample_key(1)).code);
  cache.keep(sample_key(2), sample_code(2));
  EXPECT_EQ(cache.counters().not_kept, 1U);
}

TEST_F(CacheBranches, who_is_cancelled_does_not_wait_for_a_claim) {
  DiskCache cache(settings());
  const auto held = cache.find(sample_key(1));
  ASSERT_NE(held.claim, nullptr);
  std::stop_source stop;
  stop.request_stop();
  const jit::ScopedCancellation scope(stop.get_token());
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(cache.find(sample_key(1)).claim, nullptr);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_EQ(cache.counters().timeouts, 1U);
}

TEST_F(CacheBranches, a_claim_is_made_without_words_where_nobody_can_be_named) {
  const auto own = DiskCache(settings(), failing_calls()).open_own();
  const auto locks = own.root->lock_folder();
  const auto held = platform::FileLock::acquire(*locks, "aa", {});
  ASSERT_TRUE(held);
  for (const FaultPlan& plan :
       {FaultPlan{.error = EIO, .first = 1, .count = 99, .only = "fstat"},
        FaultPlan{.fault = Fault::lie, .first = 1, .count = 99, .only = "fstat"}}) {
    set_fault_plan(plan);
    std::string holder;
    const platform::FileLock::Patience patience{
        .most = std::chrono::milliseconds(60),
        .until_told = std::chrono::milliseconds(1),
        .tell = [&](auto, const std::string& who) { holder = who; }};
    EXPECT_FALSE(platform::FileLock::acquire(*locks, "aa", patience));
    EXPECT_EQ(holder, "an unknown process");
  }
}

TEST_F(CacheBranches, a_cache_of_no_bytes_or_no_code_keeps_nothing) {
  jit::CacheSettings none = settings();
  none.most_bytes = 0;
  DiskCache off(none);
  off.keep(sample_key(1), sample_code(1));
  EXPECT_FALSE(off.find(sample_key(1)).code);
  DiskCache(settings()).keep(sample_key(1), jit::CompiledCode{});
  EXPECT_TRUE(root().list().empty());
  jit::CacheSettings read_only = settings();
  read_only.is_read_only = true;
  DiskCache(read_only).keep(sample_key(1), sample_code(1));
  EXPECT_TRUE(root().list().empty());
  EXPECT_EQ(DiskCache(read_only).find(sample_key(1)).claim, nullptr);
}

TEST_F(CacheBranches, shared_caches_are_searched_one_after_the_other) {
  keep(1);
  jit::CacheSettings with_shared = settings_at(folder_ / "own");
  with_shared.shared = {folder_ / "nowhere", folder_ / "empty", cache()};
  fs::create_directories(folder_ / "empty/v1");
  DiskCache reader(with_shared);
  EXPECT_TRUE(reader.find(sample_key(1)).code);
  EXPECT_FALSE(reader.find(sample_key(2)).code);
}

// --- folders and file systems -------------------------------------------------------------------

// System calls, some of which a test replaces.
FileCalls changed_calls;

TEST_F(CacheBranches, file_systems_are_told_by_their_numbers) {
  changed_calls = platform::system_file_calls();
  changed_calls.fstatfs = [](int, struct statfs* facts) {
    facts->f_type = 0x6969;
    return 0;
  };
  EXPECT_FALSE(is_on_local_file_system(open(folder_.path(), changed_calls)));
  EXPECT_EQ(file_system_name(open(folder_.path(), changed_calls)), "nfs");
  EXPECT_FALSE(is_on_local_file_system(open("/proc")));
  EXPECT_EQ(file_system_name(open("/proc")), "unknown (0x9fa0)");
  changed_calls.fstatfs = [](int, struct statfs*) {
    errno = EIO;
    return -1;
  };
  EXPECT_EQ(file_system_name(open(folder_.path(), changed_calls)), "unknown");
  EXPECT_FALSE(is_on_local_file_system(open(folder_.path(), changed_calls)));
}

TEST_F(CacheBranches, a_write_that_takes_nothing_is_an_error_not_a_loop) {
  changed_calls = platform::system_file_calls();
  changed_calls.write = [](int, const void*, std::size_t) -> ssize_t { return 0; };
  const std::string text = "x";
  EXPECT_EQ(open(folder_.path(), changed_calls).write_file("f", std::as_bytes(std::span(text))),
            std::errc::io_error);
}

TEST_F(CacheBranches, what_opens_as_no_folder_cannot_be_listed) {
  changed_calls = platform::system_file_calls();
  changed_calls.openat = [](int, const char*, int, mode_t) {
    return ::open("/dev/null", O_RDONLY);
  };
  EXPECT_FALSE(open(folder_.path(), changed_calls).list());
}

TEST_F(CacheBranches, trees_are_removed_to_a_depth_and_no_deeper) {
  fs::create_directories(folder_ / "a/b/c/d");
  EXPECT_FALSE(open(folder_.path()).remove_tree("a"));
  fs::create_directories(folder_ / "a/b/c/d/e/f/g/h/i/j/k");
  EXPECT_TRUE(open(folder_.path()).remove_tree("a"));
  EXPECT_TRUE(open(folder_.path()).remove_tree("nothing"));
  const Folder failing = open(folder_.path(), failing_calls());
  fs::create_directories(folder_ / "full/of");
  set_fault_plan({.error = EACCES, .first = 1, .only = "openat"});  // of the listing call
  EXPECT_TRUE(failing.remove_tree("full"));
}

TEST_F(CacheBranches, errors_of_single_calls_on_files_are_told) {
  const Folder failing = open(folder_.path(), failing_calls());
  std::ofstream(folder_ / "f") << "text";
  for (const char* const call : {"fstat", "futimens", "fsync", "openat", "fstatat"}) {
    set_fault_plan({.error = EIO, .count = 1'000, .only = call});
    const std::string name = call;
    if (name == "fstat") {
      EXPECT_TRUE(failing.check(platform::Owner::user));
      EXPECT_FALSE(failing.facts());
      EXPECT_FALSE(failing.read_file("f", 100, platform::Owner::user));
      EXPECT_FALSE(failing.open_shared_file("f"));
    } else if (name == "fsync") {
      EXPECT_TRUE(failing.sync());
    } else if (name == "fstatat") {
      EXPECT_FALSE(failing.facts_of("f"));
    } else {
      EXPECT_TRUE(failing.touch("f"));
    }
    clear_fault_plan();
  }
  EXPECT_FALSE(failing.touch("f"));
  fs::create_symlink("f", folder_ / "link");
  EXPECT_EQ(failing.read_file("link", 100, platform::Owner::user).error(),
            std::errc::permission_denied);
  EXPECT_EQ(failing.read_file("f", 2, platform::Owner::user).error(), std::errc::file_too_large);
}

TEST_F(CacheBranches, a_file_of_root_is_believed_where_that_is_asked_for) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become an unprivileged user";
  std::ofstream(folder_ / "of_root") << "text";
  fs::permissions(folder_ / "of_root", fs::perms(0644));
  fs::permissions(folder_.path(), fs::perms(0755));
  EXPECT_TRUE(holds_in_child([&] {
    if (setgid(65534) != 0 || setuid(65534) != 0) return false;
    const Folder folder = open(folder_.path());
    return folder.read_file("of_root", 100, platform::Owner::user_or_root) &&
           !folder.read_file("of_root", 100, platform::Owner::user);
  }));
}

// --- identities of files ------------------------------------------------------------------------

// The bytes of an ELF file with notes, which a test corrupts.
std::string library_text(const std::function<void(Elf64_Ehdr&, Elf64_Phdr&)>& spoil) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  header.e_phoff = sizeof header;
  Elf64_Phdr segment{};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof header + sizeof segment;
  std::string note(12, '\0');
  const std::uint32_t sizes[3] = {4, 4, NT_GNU_BUILD_ID};
  std::memcpy(note.data(), sizes, sizeof sizes);
  note += std::string("GNU\0", 4) + "\xab\xcd\xef\x01";
  segment.p_filesz = note.size();
  spoil(header, segment);
  std::string text(sizeof header + sizeof segment, '\0');
  std::memcpy(text.data(), &header, sizeof header);
  std::memcpy(text.data() + sizeof header, &segment, sizeof segment);
  return text + note;
}

TEST_F(CacheBranches, a_library_is_known_by_its_build_id_or_else_by_its_bytes) {
  const auto identity_of = [&](const std::function<void(Elf64_Ehdr&, Elf64_Phdr&)>& spoil) {
    std::ofstream(folder_ / "library", std::ios::binary) << library_text(spoil);
    return platform::file_identity(folder_ / "library");
  };
  EXPECT_EQ(identity_of([](auto&, auto&) {}), "build-id abcdef01");
  const std::function<void(Elf64_Ehdr&, Elf64_Phdr&)> spoils[] = {
      [](Elf64_Ehdr& header, Elf64_Phdr&) { header.e_ident[EI_CLASS] = ELFCLASS32; },
      [](Elf64_Ehdr& header, Elf64_Phdr&) { header.e_ident[1] = 'X'; },
      [](Elf64_Ehdr& header, Elf64_Phdr&) { header.e_phentsize = 7; },
      [](Elf64_Ehdr& header, Elf64_Phdr&) { header.e_phnum = 60'000; },
      [](Elf64_Ehdr& header, Elf64_Phdr&) { header.e_phoff = 1U << 20; },
      [](Elf64_Ehdr&, Elf64_Phdr& segment) { segment.p_type = PT_LOAD; },
      [](Elf64_Ehdr&, Elf64_Phdr& segment) { segment.p_filesz = std::uint64_t{1} << 40; },
      [](Elf64_Ehdr&, Elf64_Phdr& segment) { segment.p_filesz = 8; },
      [](Elf64_Ehdr&, Elf64_Phdr& segment) { segment.p_offset = 1U << 20; }};
  for (const auto& spoil : spoils) EXPECT_TRUE(identity_of(spoil).starts_with("xxh3 "));
  EXPECT_EQ(platform::file_identity(folder_.path()), "") << "a folder has no bytes";
  EXPECT_EQ(platform::file_identity(folder_ / "nothing"), "");
}

// --- keys and settings --------------------------------------------------------------------------

TEST(KeyBranches, lines_are_found_by_their_whole_name) {
  EXPECT_EQ(jit::condition("targets x\ntarget\ntarget y\n", "target"), "y");
  EXPECT_EQ(jit::condition("targets x\nt", "target"), "");
  EXPECT_EQ(jit::condition("entry 1 a", "entry"), "1 a");
}

TEST(KeyBranches, options_that_may_name_files_are_not_covered_by_a_key) {
  const auto is_covered = [](std::vector<std::string> options) {
    return jit::is_covered_by_key(
        {.source = "", .entry = "e", .target = {90, 'a'}, .extra_options = std::move(options)});
  };
  EXPECT_TRUE(is_covered({"-DA", "-UA", "--std=c++17", "-maxrregcount", "64", "--fmad=false"}));
  for (const char* const option : {"-I.", "-include", "--options-file", "@file", "a/b", "-o=x"})
    EXPECT_FALSE(is_covered({option})) << option;
}

TEST(KeyBranches, compilers_have_names_and_versions_in_order) {
  EXPECT_EQ(jit::name(jit::CompilerKind::nvcc), "nvcc");
  EXPECT_EQ(jit::name(jit::CompilerKind::nvrtc), "nvrtc");
  using Version = jit::CompilerVersion;
  EXPECT_TRUE((Version{12, 9} < Version{13, 0}) && (Version{13, 1} > Version{13, 0}));
  EXPECT_FALSE((Version{13, 0} < Version{13, 0}) || (Version{13, 0} == Version{13, 1}));
}

TEST(KeyBranches, each_word_of_a_flag_is_understood) {
  constexpr const char* variable = "GEMMERY_TEST_FLAG";
  for (const char* const word : {"1", "true", "on"}) {
    setenv(variable, word, 1);
    EXPECT_TRUE(platform::read_environment_flag(variable)) << word;
  }
  for (const char* const word : {"0", "false", "off", ""}) {
    setenv(variable, word, 1);
    EXPECT_FALSE(platform::read_environment_flag(variable)) << word;
  }
}

// --- dumps --------------------------------------------------------------------------------------

TEST_F(CacheBranches, dumps_that_cannot_be_written_are_told_and_leave_nothing) {
  EXPECT_TRUE(holds_in_child([&] {
    std::string told;
    set_log_sink([&](LogLevel, std::string_view words) { told = words; }, LogLevel::warning);
    jit::BuildDump dump(folder_ / "dumps");
    if (!limits_files_to(100)) return false;
    dump.write(sample_key(1), sample_code(1));
    return told.find("File too large") != std::string::npos && fs::is_empty(folder_ / "dumps");
  }));
}

TEST_F(CacheBranches, a_dump_whose_place_cannot_be_cleared_is_left_as_it_is) {
  jit::BuildDump dump(folder_ / "dumps");
  const fs::path place = fs::path(folder_ / "dumps") / jit::dump_name(sample_key(1));
  fs::create_directories(place / "a/b/c/d/e/f/g/h/i/j");
  dump.write(sample_key(1), sample_code(1));
  EXPECT_FALSE(fs::exists(place / "source.cu"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "dumps"), {}), 1);
}

TEST_F(CacheBranches, a_dump_whose_folder_fails_at_any_call_is_told_and_leaves_nothing_half) {
  for (long first = 0;; ++first) {
    fs::remove_all(folder_ / "dumps");
    jit::BuildDump dump(folder_ / "dumps", jit::BuildDump::usual_dump_bytes, failing_calls());
    set_fault_plan({.error = EIO, .first = first, .only = {}});
    dump.write(sample_key(1), sample_code(1));
    const bool is_past_the_end = calls_made() <= first;
    clear_fault_plan();
    const fs::path place = fs::path(folder_ / "dumps") / jit::dump_name(sample_key(1));
    if (fs::exists(place)) {
      EXPECT_EQ(std::distance(fs::directory_iterator(place), {}), 5) << first;
    }
    if (is_past_the_end) break;
  }
}

TEST_F(CacheBranches, names_of_dumps_keep_letters_digits_and_underscores_only) {
  const auto name_of = [](const std::string& entry) {
    return jit::dump_name(
        {.conditions = "entry " + std::to_string(entry.size()) + " " + entry + "\ntarget t\n",
         .source = ""});
  };
  EXPECT_TRUE(name_of("a{Z[9:_ \x7f/").starts_with("a_Z_9_____-t-"));
  EXPECT_TRUE(name_of("zA0").starts_with("zA0-t-"));
}

}  // namespace
}  // namespace gemmery::tests
