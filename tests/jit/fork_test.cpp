// SPDX-License-Identifier: Apache-2.0
// RELIABILITY F47: a child that is forked while a compilation is in flight gets a clear error
// instead of a hang.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gemmery/error.hpp>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "jit/build.hpp"
#include "jit/nvrtc.hpp"
#include "tests/support/no_disk_cache.hpp"

namespace gemmery::jit {
namespace {

enum ChildExit { compiled = 0, refused_naming_fork = 3, failed_otherwise = 4 };

CompileRequest request_of(int number) {
  return {.source = "extern \"C\" __global__ void entry(float* out) { *out += " +
                    std::to_string(number) + ".0f; }",
          .entry = "entry",
          .target = {90, 0},
          .extra_options = {}};
}

// Compiles in a child; -1 if it hung.
int outcome_in_child(int number) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    try {
      build(request_of(number));
      _exit(compiled);
    } catch (const Error& error) {
      const bool names_fork = std::string(error.what()).find("fork") != std::string::npos;
      _exit(error.kind() == ErrorKind::unavailable && names_fork ? refused_naming_fork
                                                                 : failed_otherwise);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class Fork : public testing::Test {
 protected:
  void SetUp() override {
    const CompilerStatus status = compiler_status();
    if (!status.found) GTEST_SKIP() << status.searched;
  }
};

TEST_F(Fork, a_child_of_an_idle_process_compiles) {
  build(request_of(100'000));
  for (int child = 0; child < 3; ++child) EXPECT_EQ(outcome_in_child(100'001 + child), compiled);
}

TEST_F(Fork, a_child_forked_during_a_storm_is_told_and_does_not_hang) {
  const int children = std::getenv("GEMMERY_SOAK") != nullptr ? 200 : 20;
  std::atomic<bool> is_over = false;
  std::atomic<int> next = 0;
  std::vector<std::jthread> storm;
  for (int thread = 0; thread < 2; ++thread) {
    storm.emplace_back([&] {
      while (!is_over) build(request_of(next++));
    });
  }
  while (next < 4) std::this_thread::yield();
  int refused = 0;
  for (int child = 0; child < children; ++child) {
    const int outcome = outcome_in_child(200'000 + child);
    EXPECT_TRUE(outcome == refused_naming_fork || outcome == compiled) << outcome;
    refused += outcome == refused_naming_fork ? 1 : 0;
  }
  is_over = true;
  std::printf("%d of %d children were refused, the others compiled\n", refused, children);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace gemmery::jit
