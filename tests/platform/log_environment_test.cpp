// SPDX-License-Identifier: Apache-2.0
// GEMMERY_LOG_LEVEL and GEMMERY_LOG_FILE. They are read once per process, so each case is a child
// process.
#include <gemmery/error.hpp>
#include <gemmery/log.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <regex>
#include <sstream>
#include <string>

#include "platform/log.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::platform {
namespace {

// Whether `claim` is true in a child with these values; nullptr: unset.
bool holds_with(const char* level, const char* file, const std::function<bool()>& claim) {
  return tests::holds_in_child([&] {
    level != nullptr ? setenv("GEMMERY_LOG_LEVEL", level, 1) : unsetenv("GEMMERY_LOG_LEVEL");
    file != nullptr ? setenv("GEMMERY_LOG_FILE", file, 1) : unsetenv("GEMMERY_LOG_FILE");
    return claim();
  });
}

// The error of the check: its operand and message.
std::string refusal() {
  try {
    check_log_environment();
  } catch (const Error& error) {
    return error.operand() + ": " + error.what();
  }
  return {};
}

bool is_refused_with(const std::string& variable, const std::string& words) {
  const std::string told = refusal();
  const bool is_named = told.starts_with(variable + ": ");
  if (!is_named || told.find(words) == std::string::npos)
    std::printf("told: \"%s\"\n", told.c_str());
  // The second check also fails, and logging meanwhile has no effect.
  log(LogLevel::error, "lost");
  return is_named && told.find(words) != std::string::npos && refusal() == told;
}

std::string read_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class LogEnvironment : public testing::Test {
 protected:
  tests::TemporaryFolder folder_;
  const std::string file_ = folder_ / "log file";
};

TEST_F(LogEnvironment, without_the_variables_nothing_is_logged) {
  EXPECT_TRUE(holds_with(nullptr, nullptr,
                         [] { return !is_logged(LogLevel::error) && refusal().empty(); }));
}

TEST_F(LogEnvironment, a_file_gets_a_line_per_message_with_time_process_and_level) {
  EXPECT_TRUE(holds_with(nullptr, file_.c_str(), [] {
    if (!is_logged(LogLevel::info) || is_logged(LogLevel::debug)) return false;
    log(LogLevel::debug, "too fine");
    log(LogLevel::info, "first");
    log(LogLevel::warning, "second");
    return refusal().empty();
  }));
  const std::regex form(
      R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z gemmery\[\d+\] info: first\n)"
      R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z gemmery\[\d+\] warning: second\n)");
  EXPECT_TRUE(std::regex_match(read_text(file_), form)) << read_text(file_);
  struct stat facts {};
  ASSERT_EQ(stat(file_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
}

TEST_F(LogEnvironment, the_level_decides_and_alone_it_means_standard_error) {
  EXPECT_TRUE(holds_with("error", file_.c_str(), [] {
    return !is_logged(LogLevel::warning) && is_logged(LogLevel::error);
  }));
  const std::string caught = folder_ / "caught";
  EXPECT_TRUE(holds_with("debug", nullptr, [&] {
    if (std::freopen(caught.c_str(), "w", stderr) == nullptr) return false;
    log(LogLevel::debug, "fine");
    return true;
  }));
  EXPECT_NE(read_text(caught).find("] debug: fine\n"), std::string::npos) << read_text(caught);
}

TEST_F(LogEnvironment, a_sink_of_the_program_is_told_as_well_by_its_own_level) {
  EXPECT_TRUE(holds_with("debug", file_.c_str(), [] {
    int heard = 0;
    set_log_sink([&](LogLevel, std::string_view) { ++heard; }, LogLevel::warning);
    log(LogLevel::debug, "for the file");
    log(LogLevel::error, "for both");
    return heard == 1;
  }));
  const std::string text = read_text(file_);
  EXPECT_NE(text.find("for the file"), std::string::npos);
  EXPECT_NE(text.find("for both"), std::string::npos);
}

TEST_F(LogEnvironment, no_message_can_pass_for_another_one) {
  EXPECT_TRUE(holds_with("info", file_.c_str(), [] {
    log(LogLevel::info, "a\n2026-01-01T00:00:00Z gemmery[1] error: forged\x1b[2J\r\x7f");
    return true;
  }));
  const std::string text = read_text(file_);
  EXPECT_NE(text.find("a\n  2026-01-01T00:00:00Z gemmery[1] error: forged\\x1b[2J\\x0d\\x7f\n"),
            std::string::npos)
      << text;
}

// Processes that share a file: each line is a complete line of one process.
TEST_F(LogEnvironment, lines_of_many_processes_are_not_mixed) {
  constexpr int processes = 16;
  constexpr int lines_each = 50;
  const std::string words(300, 'w');
  for (int process = 0; process < processes; ++process) {
    if (fork() != 0) continue;
    setenv("GEMMERY_LOG_FILE", file_.c_str(), 1);
    for (int line = 0; line < lines_each; ++line) log(LogLevel::info, words);
    _exit(0);
  }
  for (int process = 0; process < processes; ++process) wait(nullptr);
  std::istringstream lines(read_text(file_));
  int whole = 0;
  for (std::string line; std::getline(lines, line);)
    whole += line.ends_with("info: " + words) ? 1 : 0;
  EXPECT_EQ(whole, processes * lines_each);
}

TEST_F(LogEnvironment, values_that_cannot_be_served_are_refused_by_name) {
  EXPECT_TRUE(holds_with("loud", nullptr, [] {
    return is_refused_with("GEMMERY_LOG_LEVEL", "debug, info, warning, error");
  }));
  EXPECT_TRUE(holds_with(nullptr, "log.txt",
                         [] { return is_refused_with("GEMMERY_LOG_FILE", "absolute path"); }));
  const std::string nowhere = folder_ / "no/such/log";
  EXPECT_TRUE(holds_with("info", nowhere.c_str(), [&] {
    return is_refused_with("GEMMERY_LOG_FILE", nowhere + ": No such file or directory");
  }));
}

TEST_F(LogEnvironment, a_file_that_is_full_loses_messages_and_nothing_else) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  EXPECT_TRUE(holds_with("debug", "/dev/full", [] {
    log(LogLevel::error, "lost");
    return refusal().empty();
  }));
}

}  // namespace
}  // namespace gemmery::platform
