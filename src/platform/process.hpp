// SPDX-License-Identifier: Apache-2.0
// Runs other programs by absolute path with exactly the given arguments and environment: no shell,
// no inherited variables, no inherited files.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace gemmery::platform {

struct ProcessRequest {
  std::vector<std::string> words;        // the program's absolute path first
  std::vector<std::string> environment;  // "NAME=value", all of it
  std::string folder;                    // the working directory; absolute
  std::chrono::milliseconds time_limit = std::chrono::minutes(5);
  std::function<bool()> is_cancelled = {};  // called a few times a second
  std::size_t output_limit = 64U << 20;     // bytes of output that are kept
};

struct ProcessResult {
  enum class End { exited, killed, timed_out, cancelled };

  End end = End::exited;
  int code = 0;        // exit code, or the number of the signal that killed it
  std::string output;  // standard output and standard error, in the order of writing

  bool is_success() const noexcept { return end == End::exited && code == 0; }
};

// Runs a program to its end. One that times out or is cancelled is killed with every process it
// started. Throws Error: invalid_argument for paths that are not absolute, unavailable for a
// program that cannot be started.
ProcessResult run_process(const ProcessRequest& request);

}  // namespace gemmery::platform
