// SPDX-License-Identifier: Apache-2.0
// A progress bar on standard error. Prints nothing if standard error is not a terminal.
#pragma once

#include <cstddef>
#include <string_view>

namespace gemmery::cli {

class Progress {
 public:
  explicit Progress(std::size_t steps);
  ~Progress();  // erases the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Begins a step.
  void step(std::string_view what);

 private:
  bool is_shown_;
  std::size_t steps_;
  std::size_t done_ = 0;
};

}  // namespace gemmery::cli
