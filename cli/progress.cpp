// SPDX-License-Identifier: Apache-2.0
// Overwrites its own line.
#include "cli/progress.hpp"

#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/terminal.hpp"

namespace gemmery::cli {
namespace {

constexpr std::size_t bar_columns = 24;
constexpr std::string_view wipe_line = "\r\033[K";

}  // namespace

Progress::Progress(std::size_t steps)
    : is_shown_(!is_quiet() && ::isatty(STDERR_FILENO) == 1), steps_(steps) {}

Progress::~Progress() {
  if (is_shown_ && done_ > 0) std::fputs(wipe_line.data(), stderr);
}

void Progress::step(std::string_view what) {
  if (!is_shown_) return;
  const std::size_t filled = steps_ == 0 ? 0 : bar_columns * done_ / steps_;
  ++done_;
  const std::string bar = fmt::format("[{:=<{}}{:{}}] {}/{}  {}", "", filled, "",
                                      bar_columns - filled, done_, steps_, what);
  // One column less, since a write to the last one scrolls. Read each time, since the terminal may
  // be resized.
  const std::size_t columns = terminal_columns(STDERR_FILENO).value_or(80);
  std::fputs((std::string(wipe_line) + bar.substr(0, columns - 1)).c_str(), stderr);
}

}  // namespace gemmery::cli
