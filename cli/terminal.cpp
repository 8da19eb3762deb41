// SPDX-License-Identifier: Apache-2.0
// Asks the terminal for its width.
#include "cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
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

}  // namespace

std::optional<std::size_t> terminal_columns(int file) noexcept {
  winsize size{};
  if (::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return environment_columns();
}

std::optional<std::size_t> columns_to_fit(int file) noexcept {
  return ::isatty(file) == 1 ? terminal_columns(file) : std::nullopt;
}

}  // namespace gemmery::cli
