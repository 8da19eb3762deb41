// SPDX-License-Identifier: Apache-2.0
// A progress bar on standard error. Prints nothing if standard error is not a terminal.
#pragma once

#include <chrono>
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

  // Tells how much of the step is done, from 0 to 1. Draws at most ten times a second.
  void within_step(double share, std::string_view what);

 private:
  void draw(double done, std::string_view what);

  bool is_shown_;
  std::size_t steps_;
  std::size_t done_ = 0;
  std::chrono::steady_clock::time_point drawn_at_ = {};
};

}  // namespace gemmery::cli
