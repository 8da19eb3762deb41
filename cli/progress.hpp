// SPDX-License-Identifier: Apache-2.0
// A bar on standard error that shows how far a long command is; nothing where standard error is no
// terminal.
#pragma once

#include <cstddef>
#include <string_view>

namespace gemmery::cli {

class Progress {
 public:
  explicit Progress(std::size_t steps);
  ~Progress();  // wipes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // A step begins.
  void step(std::string_view what);

 private:
  bool is_shown_;
  std::size_t steps_;
  std::size_t done_ = 0;
};

}  // namespace gemmery::cli
