// SPDX-License-Identifier: Apache-2.0
// Ctrl-C where something is to be left in order; everywhere else it just ends the program.
#pragma once

#include <signal.h>

#include <stop_token>
#include <thread>

namespace gemmery::cli {

// While it lives the first SIGINT asks `token` to stop and the second ends the program at once. To
// be made before the threads that it is to be for; does nothing where SIGINT is ignored.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  std::stop_token token() const noexcept { return asked_.get_token(); }

  // Where it was asked: ends the program by SIGINT, which a shell tells as 130, after a line on
  // standard error that says what became of the work.
  void end_if_asked(const char* outcome);

 private:
  sigset_t before_{};
  std::stop_source asked_;
  std::jthread watcher_;  // the last member: it uses the others
};

}  // namespace gemmery::cli
