// SPDX-License-Identifier: Apache-2.0
// The file of stored results: what is written is read, what was not written completely is
// recognised, and processes that are killed or write at once lose nothing.
#include "tune/tuning_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <thread>

#include <gemmery/error.hpp>

#include "tests/support/child_process.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tune/choices.hpp"

namespace gemmery::tuning {
namespace {

using tests::TemporaryFolder;

TuningEntry entry_of(int number, std::string kernel = "host_plain_v1") {
  return {.problem = "gemm " + std::to_string(8 + number) + "x16x24 a=f32",
          .conditions = {.device = "a CPU (cpu, 2 threads)",
                         .driver = "oneDNN 2.6.3",
                         .compiler = "GCC 12.2.0",
                         .gemmery = "0.1.0"},
          .kernel = std::move(kernel),
          .median_us = 12.5,
          .rounds = 40,
          .tuned_at = "2026-01-02T03:04:05Z",
          .candidates = {{"host_plain_v1", 10, 12.5, "winner"},
                         {"user_x_v1", std::numeric_limits<double>::infinity(), 0,
                          "wrong: it's 'bad'\nhere"}}};
}

TuningFile file_in(const TemporaryFolder& folder) {
  return TuningFile({.folder = {.path = folder / "kept"}, .name = "tuning.toml"});
}

std::string text_of(const TuningFile& file) {
  std::ifstream stream(file.path());
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

void write_text(const TuningFile& file, const std::string& text) {
  std::ofstream(file.path()) << text;
}

std::vector<std::string> problems_in(const TuningFile& file) {
  std::vector<std::string> problems;
  for (const ReadEntry& read : file.read().content.entries) problems.push_back(read.entry.problem);
  return problems;
}

TEST(TuningFile, gives_back_what_was_appended) {
  const TemporaryFolder folder;
  const TuningFile file = file_in(folder);
  EXPECT_TRUE(file.read().content.entries.empty());
  EXPECT_EQ(file.remove([](const TuningEntry&) { return true; }), 0u);
  file.append(entry_of(1));
  file.append(entry_of(2));
  const auto reading = file.read();
  ASSERT_EQ(reading.content.entries.size(), 2u);
  EXPECT_EQ(reading.content.faulty, 0u);
  const TuningEntry& read = reading.content.entries[1].entry;
  const TuningEntry written = entry_of(2);
  EXPECT_EQ(read.problem, written.problem);
  EXPECT_EQ(read.conditions, written.conditions);
  EXPECT_EQ(read.kernel, written.kernel);
  EXPECT_EQ(read.median_us, written.median_us);
  EXPECT_EQ(read.rounds, written.rounds);
  EXPECT_EQ(read.tuned_at, written.tuned_at);
  EXPECT_EQ(text_of(file),
            std::string(file_head()) + print_entry(entry_of(1)) + print_entry(written));
}

TEST(TuningFile, refuses_names_that_it_cannot_write) {
  const TemporaryFolder folder;
  EXPECT_THROW(file_in(folder).append(entry_of(1, "it's")), Error);
  EXPECT_THROW(file_in(folder).append(entry_of(1, "two\nlines")), Error);
}

TEST(TuningFile, ignores_a_table_that_was_changed_and_keeps_the_others) {
  const TemporaryFolder folder;
  const TuningFile file = file_in(folder);
  for (int number = 0; number < 3; ++number) file.append(entry_of(number));
  std::string text = text_of(file);
  text.replace(text.find("9x16x24"), 7, "7x16x24");
  write_text(file, text);
  EXPECT_EQ(file.read().content.faulty, 1u);
  EXPECT_EQ(problems_in(file), (std::vector{entry_of(0).problem, entry_of(2).problem}));
}

TEST(TuningFile, survives_a_table_that_was_cut_anywhere) {
  const TemporaryFolder folder;
  const TuningFile file = file_in(folder);
  file.append(entry_of(0));
  const std::string whole = text_of(file);
  const std::string next = print_entry(entry_of(1));
  std::mt19937_64 random(tests::random_seed());
  for (int turn = 0; turn < 60; ++turn) {
    const std::size_t cut = random() % next.size();
    write_text(file, whole + next.substr(0, cut));
    file.append(entry_of(2));
    const auto problems = problems_in(file);
    ASSERT_GE(problems.size(), 2u) << "cut after " << cut;
    EXPECT_EQ(problems.front(), entry_of(0).problem);
    EXPECT_EQ(problems.back(), entry_of(2).problem) << "cut after " << cut;
  }
}

TEST(TuningFile, removes_what_is_chosen_and_what_is_faulty) {
  const TemporaryFolder folder;
  const TuningFile file = file_in(folder);
  for (int number = 0; number < 3; ++number) file.append(entry_of(number));
  write_text(file, text_of(file) + "[[tuning]]\nproblem = 'gemm");
  std::ofstream(file.path() + ".part-0123") << "of a process that was killed";
  const auto is_second = [](const TuningEntry& entry) {
    return entry.problem == entry_of(1).problem;
  };
  EXPECT_EQ(file.remove(is_second), 1u);
  EXPECT_EQ(file.read().content.faulty, 0u);
  EXPECT_EQ(problems_in(file), (std::vector{entry_of(0).problem, entry_of(2).problem}));
  EXPECT_NE(access((file.path() + ".part-0123").c_str(), F_OK), 0);
}

TEST(TuningFile, is_not_used_where_others_may_write) {
  const TemporaryFolder folder;
  const TuningFile file = file_in(folder);
  file.append(entry_of(0));
  ASSERT_EQ(chmod(file.path().c_str(), 0666), 0);
  EXPECT_FALSE(file.read().refusal.empty());
  EXPECT_THROW(file.append(entry_of(1)), Error);
  ASSERT_EQ(chmod(file.path().c_str(), 0644), 0);
  EXPECT_TRUE(file.read().refusal.empty());
  ASSERT_EQ(chmod((folder / "kept").c_str(), 0777), 0);
  EXPECT_FALSE(file.read().refusal.empty());
  EXPECT_THROW(file.append(entry_of(1)), Error);
}

TEST(TuningFile, choices_are_the_last_of_equal_problems_and_conditions) {
  FileContent content;
  content.entries = {{entry_of(1, "first"), ""}, {entry_of(1, "second"), ""}, {entry_of(2), ""}};
  content.entries.push_back({entry_of(1, "elsewhere"), ""});
  content.entries.back().entry.conditions.driver = "no oneDNN";
  content.entries.push_back({entry_of(3), ""});
  content.entries.back().entry.problem = "gemm of a later version";
  const Choices choices(std::move(content));
  const auto& list = choices.of(parse_problem(entry_of(1).problem).problem);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]->entry().kernel, "second");
  EXPECT_EQ(list[1]->entry().kernel, "elsewhere");
  EXPECT_TRUE(choices.of(parse_problem("gemm 1x1x1 a=f32").problem).empty());
}

// --- processes ----------------------------------------------------------------------------------

TEST(TuningFile, keeps_the_entries_of_processes_that_write_at_once) {
  const TemporaryFolder folder;
  const TuningFile file = file_in(folder);
  constexpr int processes = 4;
  constexpr int each = 10;
  for (int process = 0; process < processes; ++process) {
    if (fork() != 0) continue;
    alarm(60);
    for (int number = 0; number < each; ++number) file.append(entry_of(process * each + number));
    file.remove([](const TuningEntry&) { return false; });
    _exit(0);
  }
  EXPECT_EQ(tests::count_failed_children(processes), 0);
  auto problems = problems_in(file);
  std::ranges::sort(problems);
  EXPECT_EQ(std::ranges::unique(problems).size(), 0u);
  EXPECT_EQ(problems.size(), static_cast<std::size_t>(processes * each));
}

// Appends, and reports each entry that is stored; now and then the file is replaced.
[[noreturn]] void write_until_killed(const TuningFile& file, int first, int reports) {
  for (int number = first;; ++number) {
    file.append(entry_of(number));
    if (number % 5 == 4) file.append(entry_of(-1));
    if (number % 5 == 4)
      file.remove([&](const TuningEntry& entry) { return entry.problem == entry_of(-1).problem; });
    if (write(reports, &number, sizeof number) != sizeof number) _exit(1);
  }
}

TEST(TuningFile, a_process_that_is_killed_loses_nothing_that_it_stored) {
  const int kills = std::getenv("GEMMERY_SOAK") != nullptr ? 50 : 5;
  std::mt19937_64 random(tests::random_seed());
  const TemporaryFolder folder(std::filesystem::temp_directory_path());  // on a disk
  const TuningFile file = file_in(folder);
  int stored = 0;
  for (int turn = 0; turn < kills; ++turn) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) write_until_killed(file, stored, ends[1]);
    close(ends[1]);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the child could not write";
    for (int number = 0; read(ends[0], &number, sizeof number) == sizeof number;)
      stored = number + 1;
    close(ends[0]);
    const auto problems = problems_in(file);
    for (int number = 0; number < stored; ++number)
      ASSERT_NE(std::ranges::find(problems, entry_of(number).problem), problems.end())
          << "entry " << number << " after kill " << turn;
  }
  std::printf("%d kills, %d entries stored, none lost\n", kills, stored);
}

}  // namespace
}  // namespace gemmery::tuning
