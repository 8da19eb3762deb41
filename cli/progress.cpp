// SPDX-License-Identifier: Apache-2.0
// Overwrites its own line.
#include "cli/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/terminal.hpp"

namespace gemmery::cli {
namespace {

constexpr std::size_t bar_columns = 24;

}  // namespace

Progress::Progress(std::size_t steps)
    : is_shown_(!is_quiet() && ::isatty(STDERR_FILENO) == 1), steps_(steps) {}

Progress::~Progress() { erase_bar(); }

void Progress::step(std::string_view what) {
  if (!is_shown_) return;
  ++done_;
  draw(static_cast<double>(done_ - 1), what);
}

void Progress::within_step(double share, std::string_view what) {
  constexpr std::chrono::milliseconds pause{100};
  if (!is_shown_ || std::chrono::steady_clock::now() - drawn_at_ < pause) return;
  draw(static_cast<double>(done_) - 1 + share, what);
}

void Progress::draw(double done, std::string_view what) {
  drawn_at_ = std::chrono::steady_clock::now();
  const double columns_per_step =
      steps_ == 0 ? 0 : static_cast<double>(bar_columns) / static_cast<double>(steps_);
  const auto filled = std::min(static_cast<std::size_t>(done * columns_per_step), bar_columns);
  const std::string bar = fmt::format("[{:=<{}}{:{}}] {}/{}  {}", "", filled, "",
                                      bar_columns - filled, done_, steps_, what);
  // One column less, since a write to the last one scrolls. Read each time, since the terminal may
  // be resized.
  const std::size_t columns = terminal_columns(STDERR_FILENO).value_or(80);
  draw_bar(std::string_view(bar).substr(0, columns - 1));
}

}  // namespace gemmery::cli
