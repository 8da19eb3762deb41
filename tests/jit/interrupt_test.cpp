// SPDX-License-Identifier: Apache-2.0
// Ctrl-C while NVRTC compiles. In children only: NVRTC changes the handler of a process once, in
// its first compilation.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gemmery/error.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "jit/compiler.hpp"
#include "jit/nvrtc.hpp"

namespace gemmery::jit {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

enum ChildExit { heard = 0, deaf = 5, in_strange_hands = 6, refused = 7 };

volatile sig_atomic_t interrupts = 0;
void count_interrupt(int) { interrupts = interrupts + 1; }

// Keeps the front end busy for seconds and the rest of the compiler not at all.
CompileRequest slow_request() {
  return {.source = R"(
__device__ constexpr unsigned mix(unsigned rounds, unsigned seed) {
  for (unsigned round = 0; round < rounds; ++round) seed = seed * 1664525u + 1013904223u;
  return seed;
}
template <unsigned first, unsigned last> struct Sum {
  static constexpr unsigned middle = (first + last) / 2;
  static constexpr unsigned value = Sum<first, middle>::value + Sum<middle, last>::value;
};
template <unsigned first> struct Sum<first, first + 1> {
  static constexpr unsigned value = mix(1000, first);
};
extern "C" __global__ void entry(unsigned* out) { *out = Sum<0, 1000>::value; }
)",
          .entry = "entry",
          .target = {90, 0},
          .extra_options = {}};
}

// Whoever asks the process to end meanwhile reaches this handler; false where for half a second it
// would have been another one.
bool is_own_handler_back(sighandler_t own) {
  const Clock::time_point deadline = Clock::now() + milliseconds(500);
  while (Clock::now() < deadline) {
    struct sigaction now {};
    sigaction(SIGINT, nullptr, &now);
    if (now.sa_handler == own) return true;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return false;
}

// Sends itself SIGINT every 20 ms for as long as a first compilation takes.
int interrupt_first_compilation(sighandler_t handler) {
  signal(SIGINT, handler);
  std::atomic<bool> has_ended = false;
  std::atomic<bool> has_failed = false;
  std::thread compiling([&] {
    try {
      compile(slow_request());
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      has_failed = true;
    }
    has_ended = true;
  });
  int sent = 0;
  while (!has_ended) {
    std::this_thread::sleep_for(milliseconds(20));
    if (!is_own_handler_back(handler)) _exit(in_strange_hands);
    kill(getpid(), SIGINT);
    ++sent;
  }
  compiling.join();
  if (has_failed) return refused;
  return sent > 10 && interrupts > 0 ? heard : deaf;
}

int status_of_child(sighandler_t handler) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    _exit(interrupt_first_compilation(handler));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

class Interrupt : public testing::Test {
 protected:
  void SetUp() override {
    const CompilerStatus status = compiler_status();
    if (!status.found) GTEST_SKIP() << status.searched;
  }
};

TEST_F(Interrupt, reaches_the_programs_own_handler_while_nvrtc_compiles) {
  const int status = status_of_child(count_interrupt);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), heard);
}

TEST_F(Interrupt, ends_a_program_without_a_handler_as_it_ends_every_other) {
  const int status = status_of_child(SIG_DFL);
  ASSERT_TRUE(WIFSIGNALED(status)) << "exit status " << WEXITSTATUS(status);
  EXPECT_EQ(WTERMSIG(status), SIGINT);
}

TEST_F(Interrupt, stays_ignored_where_it_was) {
  const int status = status_of_child(SIG_IGN);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), deaf);
}

}  // namespace
}  // namespace gemmery::jit
