// SPDX-License-Identifier: Apache-2.0
// Counts the threads inside NVRTC and lets the end of the process wait for them.
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

// Longer than it takes a compilation to notice that it is cancelled. One without an end, of a
// library that cannot be interrupted, must not keep the process.
constexpr std::chrono::seconds longest_wait{10};

// Atomics instead of a lock, which a signal handler that ends the process might find held.
std::atomic<bool> is_ending{false};
std::atomic<int> threads_inside{0};
thread_local int inside_here = 0;

// Of the whole end, which waits in several places.
Clock::time_point end_of_waiting() {
  static const Clock::time_point end = Clock::now() + longest_wait;
  return end;
}

void wait_for_threads_inside() {
  is_ending.store(true);
  // A handler of a signal may end the process from within a compilation, which then never leaves.
  while (threads_inside.load() > inside_here && Clock::now() < end_of_waiting())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Of the parent's threads only the one that forked is here.
void count_anew_in_child() { threads_inside.store(inside_here); }

// `exit` destroys the objects of the thread that calls it before it calls anything that is
// registered, so this waits before NVRTC's ends, however late those were registered. The main
// thread's objects are destroyed by `exit` and by nothing else (glibc), other threads' usually by
// their own ends, which are not the process's.
struct WaitWhenMainEnds {
  ~WaitWhenMainEnds() {
    if (syscall(SYS_gettid) == getpid()) wait_for_threads_inside();
  }
};
thread_local WaitWhenMainEnds wait_when_main_ends;

// An object of a thread is there once it is named.
bool watch_this_thread() noexcept {
  static_cast<void>(&wait_when_main_ends);
  return true;
}

// The thread that loads the library is the main one nearly always, and may be in none of its
// calls later: the only moment to meet it is now.
[[maybe_unused]] const bool is_loading_thread_watched = watch_this_thread();

// For an `exit` of another thread. What is registered last is called first. NVRTC registers the
// ends of some of its data when it is opened and of others when a compilation first needs them, so
// this is registered after each of its steps; a few dozen make a compilation, and the first few
// compilations need all there is.
void put_wait_first() noexcept {
  constexpr int most_times = 1000;
  static std::atomic<int> times{0};
  if (times.load(std::memory_order_relaxed) < most_times) {
    ++times;
    std::atexit(wait_for_threads_inside);
  }
}

void watch_for_fork() {
  static const int registered = pthread_atfork(nullptr, nullptr, count_anew_in_child);
  require(registered == 0, "pthread_atfork failed");
}

}  // namespace

InsideNvrtc::InsideNvrtc() {
  watch_for_fork();
  watch_this_thread();
  put_wait_first();
  // Counted before the look, so that either this sees the end or the end sees this.
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
