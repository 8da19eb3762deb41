// SPDX-License-Identifier: Apache-2.0
// A thread that receives SIGINT, which all other threads have blocked.
#include "cli/interrupt_scope.hpp"

#include <cstdlib>
#include <string>

#include "cli/output.hpp"

namespace gemmery::cli {
namespace {

sigset_t interrupt_alone() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

bool is_ignored() {
  struct sigaction action {};
  ::sigaction(SIGINT, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

// Ends the process by the signal's default action.
[[noreturn]] void end_by_interrupt() {
  const sigset_t set = interrupt_alone();
  struct sigaction as_it_was {};
  as_it_was.sa_handler = SIG_DFL;
  ::sigaction(SIGINT, &as_it_was, nullptr);
  ::raise(SIGINT);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  std::_Exit(130);  // not reached
}

void watch(const std::stop_token& is_over, std::stop_source& asked) {
  constexpr timespec look_every{.tv_sec = 0, .tv_nsec = 20'000'000};
  const sigset_t set = interrupt_alone();
  while (!is_over.stop_requested()) {
    if (::sigtimedwait(&set, nullptr, &look_every) != SIGINT) continue;
    if (asked.stop_requested()) end_by_interrupt();
    asked.request_stop();
  }
}

}  // namespace

InterruptScope::InterruptScope() {
  const sigset_t set = interrupt_alone();
  pthread_sigmask(SIG_SETMASK, nullptr, &before_);
  if (is_ignored()) return;
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  watcher_ = std::jthread([this](const std::stop_token& is_over) { watch(is_over, asked_); });
}

InterruptScope::~InterruptScope() {
  watcher_ = {};
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void InterruptScope::end_if_asked(const char* outcome) {
  if (!asked_.stop_requested()) return;
  tell(std::string("gemmery: interrupted: ") + outcome);
  end_by_interrupt();
}

}  // namespace gemmery::cli
