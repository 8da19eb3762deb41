// SPDX-License-Identifier: Apache-2.0
// Counts compilations in flight and tells a forked child that there were some.
#include "jit/fork_guard.hpp"

#include <gemmery/error.hpp>

#include <pthread.h>

#include <atomic>

#include "core/invariant.hpp"

namespace gemmery::jit {
namespace {

std::atomic<int> in_flight{0};
std::atomic<bool> is_forked_in_flight{false};

// The parent's compilations continue in the parent; the child has only the thread that forked.
void note_fork_in_child() {
  if (in_flight.load(std::memory_order_relaxed) > 0)
    is_forked_in_flight.store(true, std::memory_order_relaxed);
}

void note_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, note_fork_in_child);
  require(registered == 0, "pthread_atfork failed");
}

}  // namespace

CompilationInFlight::CompilationInFlight() {
  note_forks();
  if (is_forked_in_flight.load(std::memory_order_relaxed)) {
    throw Error(
        {.kind = ErrorKind::unavailable,
         .operand = "NVRTC",
         .expected = "a process that was not forked while a kernel was being compiled",
         .got = "a fork of one",
         .hint = "compile before the fork, or start the process with exec (Python: \"spawn\")"});
  }
  in_flight.fetch_add(1, std::memory_order_relaxed);
}

CompilationInFlight::~CompilationInFlight() { in_flight.fetch_sub(1, std::memory_order_relaxed); }

}  // namespace gemmery::jit
