// SPDX-License-Identifier: Apache-2.0
// Ctrl-C for commands that clean up before they end. In other commands Ctrl-C ends the program.
#pragma once

#include <signal.h>

#include <stop_token>
#include <thread>

namespace gemmery::cli {

// While it exists, the first SIGINT requests a stop of `token` and the second ends the program at
// once. Must be created before the threads that it serves; does nothing if SIGINT is ignored.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  std::stop_token token() const noexcept { return asked_.get_token(); }

  // If a stop was requested: prints `outcome`, which says how far it got, and ends the program
  // by SIGINT, which a shell reports as 130.
  void end_if_asked(const char* outcome);

 private:
  sigset_t before_{};
  std::stop_source asked_;
  std::jthread watcher_;  // the last member: it uses the others
};

}  // namespace gemmery::cli
