// SPDX-License-Identifier: Apache-2.0
// Counts the threads inside NVRTC and makes the end of the process wait for them.
#include "jit/exit_guard.hpp"

#include <gemmery/error.hpp>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "core/invariant.hpp"

namespace gemmery::jit {
namespace {

using Clock = std::chrono::steady_clock;

// Longer than a compilation takes to notice its cancellation. A compilation that cannot be
// interrupted must not keep the process alive.
constexpr std::chrono::seconds longest_wait{10};

// Atomics instead of a lock, which a signal handler that ends the process might find held.
std::atomic<bool> is_ending{false};
std::atomic<int> threads_inside{0};
thread_local int inside_here = 0;

// The deadline of all waits at the process's end together.
Clock::time_point end_of_waiting() {
  static const Clock::time_point end = Clock::now() + longest_wait;
  return end;
}

void wait_for_threads_inside() {
  is_ending.store(true);
  // A signal handler may end the process from within a compilation, which then never leaves.
  while (threads_inside.load() > inside_here && Clock::now() < end_of_waiting())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Only the thread that forked exists in the child.
void count_anew_in_child() { threads_inside.store(inside_here); }

// `exit` destroys the thread-local objects of the calling thread before it runs any registered
// function, so this waits before NVRTC's exit functions run, however late NVRTC registered them.
// The main thread's objects are destroyed only by `exit` (glibc). Other threads' objects are
// usually destroyed at the thread's own end, which is not the process's.
struct WaitWhenMainEnds {
  ~WaitWhenMainEnds() {
    if (syscall(SYS_gettid) == getpid()) wait_for_threads_inside();
  }
};
thread_local WaitWhenMainEnds wait_when_main_ends;

// Naming a thread-local object creates it.
bool watch_this_thread() noexcept {
  static_cast<void>(&wait_when_main_ends);
  return true;
}

// The library is nearly always loaded by the main thread, which may make no call later, so this is
// the only chance to watch it.
[[maybe_unused]] const bool is_loading_thread_watched = watch_this_thread();

// For an `exit` from another thread. The function registered last runs first. NVRTC registers exit
// functions when it is opened and when a compilation first needs some of its data. So this is
// registered again after each of NVRTC's steps; a compilation has a few dozen, and the first few
// compilations register everything.
void put_wait_first() noexcept {
  constexpr int most_times = 1000;
  static std::atomic<int> times{0};
  if (times.load(std::memory_order_relaxed) < most_times) {
    ++times;
    std::atexit(wait_for_threads_inside);
  }
}

void count_anew_after_fork() {
  static const int registered = pthread_atfork(nullptr, nullptr, count_anew_in_child);
  require(registered == 0, "pthread_atfork failed");
}

}  // namespace

InsideNvrtc::InsideNvrtc() {
  count_anew_after_fork();
  watch_this_thread();
  put_wait_first();
  // Counted before the check: either this thread sees the end, or the end sees this thread.
  ++threads_inside;
  if (is_ending.load()) {
    --threads_inside;
    throw Error({.kind = ErrorKind::unavailable,
                 .operand = "NVRTC",
                 .expected = "a compilation before the process ends",
                 .got = "one after its end has begun",
                 .hint = "wait for threads that compile before you return from main"});
  }
  ++inside_here;
}

InsideNvrtc::~InsideNvrtc() {
  put_wait_first();
  --inside_here;
  --threads_inside;
}

bool InsideNvrtc::must_leave() noexcept {
  put_wait_first();
  return is_process_ending();
}

bool is_process_ending() noexcept { return is_ending.load(std::memory_order_relaxed); }

}  // namespace gemmery::jit
