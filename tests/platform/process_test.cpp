// SPDX-License-Identifier: Apache-2.0
// Programs started by the library, and the folders in which they run.
#include "platform/process.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <gemmery/error.hpp>

#include <chrono>
#include <filesystem>

#include "platform/private_folder.hpp"

namespace gemmery::platform {
namespace {

using End = ProcessResult::End;

ProcessRequest shell(std::string script) {
  return {.words = {"/bin/sh", "-c", std::move(script)}, .environment = {}, .folder = "/"};
}

TEST(Process, gives_its_exit_code_and_all_that_it_wrote_in_order) {
  const ProcessResult result = run_process(shell("echo one; echo two >&2; echo three; exit 7"));
  EXPECT_EQ(result.end, End::exited);
  EXPECT_EQ(result.code, 7);
  EXPECT_EQ(result.output, "one\ntwo\nthree\n");
  EXPECT_FALSE(result.is_success());
}

TEST(Process, words_reach_it_unchanged) {
  const std::string odd = "a folder named a b'c$(x) \"\\ *\n;";
  const ProcessResult result =
      run_process({.words = {"/bin/sh", "-c", "printf %s \"$1\"", "sh", odd},
                   .environment = {},
                   .folder = "/"});
  EXPECT_EQ(result.output, odd);
}

TEST(Process, has_no_variable_and_no_open_file_but_what_it_was_given) {
  ProcessRequest request = shell("set | grep -c HOSTILE; ls /proc/self/fd | wc -l; pwd");
  ::setenv("HOSTILE", "1", 1);
  request.environment = {"PATH=/usr/bin:/bin"};
  request.folder = "/usr";
  EXPECT_EQ(run_process(request).output, "0\n4\n/usr\n");  // descriptors 0, 1, 2 and that of ls
}

TEST(Process, that_is_late_is_killed_with_all_that_it_started) {
  ProcessRequest request = shell("sleep 60 & echo started; sleep 60");
  request.environment = {"PATH=/usr/bin:/bin"};
  request.time_limit = std::chrono::milliseconds(200);
  const auto start = std::chrono::steady_clock::now();
  const ProcessResult result = run_process(request);
  EXPECT_EQ(result.end, End::timed_out);
  EXPECT_EQ(result.output, "started\n");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Process, that_is_cancelled_is_killed) {
  ProcessRequest request = shell("sleep 60");
  request.environment = {"PATH=/usr/bin:/bin"};
  request.is_cancelled = [] { return true; };
  EXPECT_EQ(run_process(request).end, End::cancelled);
}

TEST(Process, that_a_signal_kills_says_so) {
  const ProcessResult result = run_process(shell("kill -9 $$"));
  EXPECT_EQ(result.end, End::killed);
  EXPECT_EQ(result.code, 9);
}

TEST(Process, output_beyond_the_limit_is_dropped) {
  ProcessRequest request = shell("head -c 300000 /dev/zero");
  request.environment = {"PATH=/usr/bin:/bin"};
  request.output_limit = 1000;
  const ProcessResult result = run_process(request);
  EXPECT_TRUE(result.is_success());
  EXPECT_EQ(result.output.size(), 1000U);
}

TEST(Process, relative_or_missing_programs_are_refused_by_name) {
  ProcessRequest request = shell("true");
  request.words[0] = "sh";
  EXPECT_THROW(run_process(request), Error);
  request.words[0] = "/nowhere/program";
  try {
    run_process(request);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    EXPECT_EQ(error.operand(), "/nowhere/program");
  }
}

TEST(PrivateFolder, is_the_owners_alone_and_goes_with_the_object) {
  std::string path;
  {
    const PrivateFolder folder("gemmery-test");
    path = folder.path();
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0700U);
    folder.write("deep/er/file", "text");
    EXPECT_EQ(folder.read("deep/er/file"), "text");
    EXPECT_EQ(folder.read("other"), std::nullopt);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace gemmery::platform
