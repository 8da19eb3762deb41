// SPDX-License-Identifier: Apache-2.0
// GEMMERY_DUMP_DIR: every build writes its complete files there, readable only by the user; a
// failed dump never fails a build.
#include "jit/build_dump.hpp"

#include <gemmery/error.hpp>
#include <gemmery/log.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "jit/build.hpp"
#include "tests/faults/sample_code.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::jit {
namespace {

namespace fs = std::filesystem;
using tests::sample_code;
using tests::sample_key;

std::string read_text(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& file : fs::directory_iterator(folder)) names.insert(file.path().filename());
  return names;
}

class Dump : public testing::Test {
 protected:
  fs::path dump_of(int number, const std::string& suffix = "") const {
    return fs::path(place_) / (dump_name(sample_key(number)) + suffix);
  }

  // A builder whose compiler returns the sample of a number, and fails for 0.
  Builder make_builder() const {
    CompilerSteps steps{
        .key = [](const CompileRequest& request) { return sample_key(std::stoi(request.source)); },
        .open = [] {},
        .compile = [](const CompileRequest& request) -> CompiledCode {
          const int number = std::stoi(request.source);
          if (number != 0) return sample_code(number);
          throw Error({.kind = ErrorKind::compile, .operand = "kernel", .got = "no such thing"});
        }};
    return {std::make_shared<DiskCache>(tests::settings_at(folder_ / "cache")), std::move(steps),
            std::make_shared<BuildDump>(place_)};
  }
  static CompileRequest request_of(int number) {
    return {.source = std::to_string(number),
            .entry = "kernel",
            .target = {90, 'a'},
            .extra_options = {}};
  }

  tests::TemporaryFolder folder_;
  const std::string place_ = folder_ / "a dump/of builds";
};

TEST_F(Dump, has_source_code_log_and_key_of_what_was_compiled_and_of_what_was_found) {
  for (const bool is_found : {false, true}) {
    Builder builder = make_builder();
    builder.build(request_of(7));
    EXPECT_EQ(names_in(dump_of(7)),
              (std::set<std::string>{"key", "source.cu", "kernel.cubin", "log", "manifest"}))
        << is_found;
    EXPECT_EQ(read_text(dump_of(7) / "source.cu"), sample_key(7).source);
    EXPECT_EQ(read_text(dump_of(7) / "log"), sample_code(7).log);
    EXPECT_EQ(read_text(dump_of(7) / "kernel.cubin").size(), sample_code(7).cubin.size());
    fs::remove_all(dump_of(7));
  }
  EXPECT_TRUE(dump_of(7).filename().string().starts_with("kernel-sm_90a-"));
}

TEST_F(Dump, of_a_failure_has_source_and_error) {
  Builder builder = make_builder();
  EXPECT_THROW(builder.build(request_of(0)), Error);
  EXPECT_EQ(names_in(dump_of(0, "-failed")), (std::set<std::string>{"key", "source.cu", "log"}));
  EXPECT_NE(read_text(dump_of(0, "-failed") / "log").find("no such thing"), std::string::npos);
}

TEST_F(Dump, of_ptx_holds_it_as_text) {
  CompiledCode code;
  code.ptx = ".version 9.0";
  BuildDump(place_).write(sample_key(1), code);
  EXPECT_EQ(read_text(dump_of(1) / "kernel.ptx"), code.ptx);
}

TEST_F(Dump, is_for_its_user_alone) {
  BuildDump(place_).write(sample_key(1), sample_code(1));
  EXPECT_EQ(fs::status(place_).permissions(), fs::perms(0700));
  EXPECT_EQ(fs::status(dump_of(1)).permissions(), fs::perms(0700));
  for (const auto& file : fs::directory_iterator(dump_of(1)))
    EXPECT_EQ(file.status().permissions(), fs::perms(0600)) << file.path();
}

TEST_F(Dump, of_the_same_build_takes_the_place_of_the_last_one) {
  BuildDump dump(place_);
  dump.write(sample_key(1), sample_code(1));
  std::ofstream(dump_of(1) / "log") << "scribbled over";
  dump.write(sample_key(1), sample_code(1));
  EXPECT_EQ(read_text(dump_of(1) / "log"), sample_code(1).log);
  EXPECT_EQ(names_in(place_).size(), 1U);
}

TEST_F(Dump, of_many_processes_and_threads_is_whole) {
  BuildDump dump(place_);
  for (int process = 0; process < 4; ++process) {
    if (fork() != 0) continue;
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 6; ++thread) {
      threads.emplace_back([&] {
        for (int number = 1; number < 6; ++number)
          dump.write(sample_key(number), sample_code(number));
      });
    }
    threads.clear();
    _exit(0);
  }
  for (int process = 0; process < 4; ++process) wait(nullptr);
  ASSERT_EQ(names_in(place_).size(), 5U) << "something is left aside";
  for (int number = 1; number < 6; ++number)
    EXPECT_EQ(read_text(dump_of(number) / "source.cu"), sample_key(number).source);
}

TEST_F(Dump, names_are_plain_whatever_an_entry_is_called) {
  const CacheKey key{.conditions = "target sm_90a\nentry 9 ../../a b\n", .source = "x"};
  const std::string name = dump_name(key);
  EXPECT_TRUE(name.starts_with("______a_b-sm_90a-")) << name;
  EXPECT_LT(dump_name({.conditions = "entry 999 " + std::string(999, 'a'), .source = ""}).size(),
            200U);
  EXPECT_EQ(dump_name({.conditions = "", .source = ""}).find('/'), std::string::npos);
}

TEST_F(Dump, beyond_its_bound_or_without_its_folder_the_build_goes_on_and_the_log_is_told_once) {
  std::vector<std::string> told;
  set_log_sink([&](LogLevel, std::string_view words) { told.emplace_back(words); },
               LogLevel::warning);
  BuildDump small(place_, 8000);
  for (int number = 1; number < 5; ++number) small.write(sample_key(number), sample_code(number));
  EXPECT_EQ(names_in(place_).size(), 2U);
  BuildDump gone(folder_ / "gone");
  fs::remove_all(folder_ / "gone");
  std::ofstream(folder_ / "gone") << "a file";
  for (int turn = 0; turn < 2; ++turn) gone.write(sample_key(1), sample_code(1));
  set_log_sink({});
  ASSERT_EQ(told.size(), 2U);
  EXPECT_NE(told[0].find("as much as it may"), std::string::npos) << told[0];
  EXPECT_NE(told[1].find("GEMMERY_DUMP_DIR"), std::string::npos) << told[1];
}

// --- by the environment -------------------------------------------------------------------------

// Checks the operand and kind of the error with this value, in a child process.
bool is_refused(const std::string& value, ErrorKind kind) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("GEMMERY_DUMP_DIR", value.c_str(), 1);
    try {
      environment_dump();
    } catch (const Error& error) {
      _exit(error.operand() == "GEMMERY_DUMP_DIR" && error.kind() == kind ? 0 : 2);
    }
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(Dump, folders_that_cannot_be_used_are_refused_by_the_name_of_the_variable) {
  EXPECT_TRUE(is_refused("dumps", ErrorKind::invalid_argument));
  fs::create_directory(folder_ / "open");
  EXPECT_EQ(chmod((folder_ / "open").c_str(), 0777), 0);
  EXPECT_TRUE(is_refused(folder_ / "open", ErrorKind::io));
  fs::create_directory_symlink(folder_.path(), folder_ / "link");
  EXPECT_TRUE(is_refused(folder_ / "link", ErrorKind::io));
  std::ofstream(folder_ / "file") << "x";
  EXPECT_TRUE(is_refused(folder_ / "file", ErrorKind::io));
  unsetenv("GEMMERY_DUMP_DIR");
  EXPECT_EQ(environment_dump(), nullptr);
}

}  // namespace
}  // namespace gemmery::jit
