// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and SIGTERM while NVRTC compiles. Runs in child processes, because NVRTC changes signal
// handlers in the first compilation of a process.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gemmery/error.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "jit/compiler.hpp"
#include "jit/nvrtc.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::jit {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// None is 0 or 4, the exit codes with which NVRTC would end a process.
enum ChildExit { heard = 3, deaf = 5, changed = 6, refused = 7, lost = 8 };

volatile sig_atomic_t interrupts = 0;
void count_interrupt(int) { interrupts = interrupts + 1; }
void count_with_facts(int, siginfo_t* facts, void*) {
  if (facts != nullptr && facts->si_pid == getpid()) interrupts = interrupts + 1;
}

// A source that keeps only the front end of the compiler busy.
CompileRequest slow_request(int rounds) {
  return {.source = "constexpr unsigned rounds_of_each = " + std::to_string(rounds) + ";" + R"(
__device__ constexpr unsigned mix(unsigned rounds, unsigned seed) {
  for (unsigned round = 0; round < rounds; ++round) seed = seed * 1664525u + 1013904223u;
  return seed;
}
template <unsigned first, unsigned last> struct Sum {
  static constexpr unsigned middle = (first + last) / 2;
  static constexpr unsigned value = Sum<first, middle>::value + Sum<middle, last>::value;
};
template <unsigned first> struct Sum<first, first + 1> {
  static constexpr unsigned value = mix(rounds_of_each, first);
};
extern "C" __global__ void entry(unsigned* out) { *out = Sum<0, 1000>::value; }
)",
          .entry = "entry",
          .target = {90, 0},
          .extra_options = {}};
}

// Runs a first compilation in a separate thread, for as long as the object exists.
class Compilation {
 public:
  explicit Compilation(int rounds) : thread_([this, rounds] { run(rounds); }) {}
  ~Compilation() { thread_.join(); }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  bool has_ended() const { return has_ended_; }
  bool has_failed() const { return has_failed_; }

 private:
  void run(int rounds) {
    try {
      compile(slow_request(rounds));
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      has_failed_ = true;
    }
    has_ended_ = true;
  }

  std::atomic<bool> has_ended_ = false;
  std::atomic<bool> has_failed_ = false;
  std::thread thread_;
};

// Waits until the signal is received; false if it is not, for example because it is blocked.
bool is_heard_soon(int sent) {
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(10);
  while (interrupts < sent && Clock::now() < deadline) std::this_thread::yield();
  return interrupts >= sent;
}

struct Sending {
  int signal = SIGINT;
  microseconds pause{0};
  microseconds first_after{0};
};

// Sends signals to this process during a first compilation, each after the previous one was
// received.
int hear_all_while_compiling(const Sending& sending) {
  signal(sending.signal, count_interrupt);
  int sent = 0;
  const Compilation compilation(200);
  std::this_thread::sleep_for(sending.first_after);
  while (!compilation.has_ended()) {
    kill(getpid(), sending.signal);
    if (!is_heard_soon(++sent)) return lost;
    std::this_thread::sleep_for(sending.pause);
  }
  if (compilation.has_failed()) return refused;
  return sent > 10 ? heard : deaf;
}

// Sends signals without counting them.
int interrupt_first_compilation(sighandler_t handler) {
  signal(SIGINT, handler);
  const Compilation compilation(1000);
  while (!compilation.has_ended()) {
    kill(getpid(), SIGINT);
    std::this_thread::sleep_for(milliseconds(5));
  }
  return compilation.has_failed() ? refused : deaf;
}

// Compares only the bits of signals in the masks.
bool is_same(const struct sigaction& one, const struct sigaction& other) {
  for (int number = 1; number < NSIG; ++number) {
    if (sigismember(&one.sa_mask, number) != sigismember(&other.sa_mask, number)) return false;
  }
  return one.sa_sigaction == other.sa_sigaction && one.sa_flags == other.sa_flags;
}

// Checks continuously that the actions of these signals do not change.
int watch_first_compilation() {
  const std::vector<int> numbers{SIGINT, SIGTERM, SIGXFSZ};
  std::vector<struct sigaction> before;
  for (const int number : numbers) {
    struct sigaction action {};
    action.sa_sigaction = count_with_facts;
    action.sa_flags = SA_SIGINFO;
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(number, &action, nullptr);
    sigaction(number, nullptr, &before.emplace_back());
  }
  const auto is_as_before = [&] {
    for (std::size_t place = 0; place < numbers.size(); ++place) {
      struct sigaction now {};
      sigaction(numbers[place], nullptr, &now);
      if (!is_same(now, before[place])) return false;
    }
    return true;
  };
  {
    const Compilation compilation(200);
    while (!compilation.has_ended()) {
      if (!is_as_before()) _exit(changed);
    }
    if (compilation.has_failed()) _exit(refused);
  }
  kill(getpid(), SIGINT);
  if (!is_heard_soon(1)) return lost;
  return is_as_before() ? heard : changed;
}

template <class Work>
int status_of_child(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    _exit(work());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// Load on both cores of a small machine, which slows the compilation down.
class Load {
 public:
  Load() {
    for (int thread = 0; thread < 2; ++thread)
      threads_.emplace_back([](const std::stop_token& stop) {
        while (!stop.stop_requested()) continue;
      });
  }

 private:
  std::vector<std::jthread> threads_;
};

class Interrupt : public testing::Test {
 protected:
  void SetUp() override {
    const CompilerStatus status = compiler_status();
    if (!status.found) GTEST_SKIP() << status.searched;
  }
};

TEST_F(Interrupt, reaches_the_programs_own_handler_each_time_while_nvrtc_compiles) {
  for (const int number : {SIGINT, SIGTERM}) {
    const int status =
        status_of_child([&] { return hear_all_while_compiling({.signal = number}); });
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), heard) << "signal " << number;
  }
}

TEST_F(Interrupt, reaches_it_at_any_moment_on_a_busy_machine) {
  const bool is_soak = std::getenv("GEMMERY_SOAK") != nullptr;
  std::mt19937_64 random(tests::random_seed());
  const Load load;
  for (int child = 0; child < (is_soak ? 200 : 5); ++child) {
    const Sending sending{.signal = child % 4 == 3 ? SIGTERM : SIGINT,
                          .pause = microseconds(random() % 500),
                          .first_after = microseconds(random() % 20'000)};
    const int status = status_of_child([&] { return hear_all_while_compiling(sending); });
    ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status) << " in child " << child;
    ASSERT_EQ(WEXITSTATUS(status), heard) << "child " << child;
  }
}

TEST_F(Interrupt, finds_the_programs_actions_with_their_flags_and_masks_during_and_after) {
  const int status = status_of_child(watch_first_compilation);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), heard);
}

TEST_F(Interrupt, ends_a_program_without_a_handler_as_it_ends_every_other) {
  const int status = status_of_child([] { return interrupt_first_compilation(SIG_DFL); });
  ASSERT_TRUE(WIFSIGNALED(status)) << "exit status " << WEXITSTATUS(status);
  EXPECT_EQ(WTERMSIG(status), SIGINT);
}

TEST_F(Interrupt, stays_ignored_where_it_was) {
  const int status = status_of_child([] { return interrupt_first_compilation(SIG_IGN); });
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), deaf);
}

}  // namespace
}  // namespace gemmery::jit
