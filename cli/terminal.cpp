// SPDX-License-Identifier: Apache-2.0
// Asks the terminal for its width, and writes in its colours.
#include "cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace gemmery::cli {
namespace {

std::optional<std::size_t> environment_columns() noexcept {
  const char* const value = std::getenv("COLUMNS");
  if (value == nullptr) return std::nullopt;
  const std::string_view text(value);
  std::size_t columns = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
  const bool is_number = error == std::errc{} && end == text.data() + text.size();
  return is_number && columns > 0 ? std::optional(columns) : std::nullopt;
}

constexpr const char* wipe_line = "\r\033[K";
bool has_bar = false;

bool has_colours(int file) noexcept {
  const char* const refusal = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  const bool is_refused = refusal != nullptr && *refusal != '\0';
  const bool is_dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return !is_refused && !is_dumb && ::isatty(file) == 1;
}

}  // namespace

std::optional<std::size_t> terminal_columns(int file) noexcept {
  winsize size{};
  if (::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return environment_columns();
}

std::optional<std::size_t> columns_to_fit(int file) noexcept {
  return ::isatty(file) == 1 ? terminal_columns(file) : std::nullopt;
}

void draw_bar(std::string_view bar) {
  std::fputs((wipe_line + std::string(bar)).c_str(), stderr);
  has_bar = true;
}

void erase_bar() noexcept {
  if (has_bar) std::fputs(wipe_line, stderr);
  has_bar = false;
}

std::string painted(std::string_view text, Colour colour, int file) {
  if (!has_colours(file)) return std::string(text);
  return (colour == Colour::green ? "\033[32m" : "\033[31m") + std::string(text) + "\033[0m";
}

}  // namespace gemmery::cli
