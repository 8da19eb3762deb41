// SPDX-License-Identifier: Apache-2.0
// Child processes of a test, for checks that are possible once per process, or that need other
// limits, users or environments.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>

namespace gemmery::tests {

// Whether a claim is true in a child; false if it throws, crashes or takes longer.
inline bool holds_in_child(const std::function<bool()>& claim, unsigned most_seconds = 60) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(most_seconds);
    try {
      _exit(claim() ? 0 : 1);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(2);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Waits for so many children. Returns how many did not exit with 0.
inline int count_failed_children(int children) {
  int failed = 0;
  for (int child = 0; child < children; ++child) {
    int status = 0;
    wait(&status);
    failed += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
  }
  return failed;
}

}  // namespace gemmery::tests
