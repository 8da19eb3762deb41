// SPDX-License-Identifier: Apache-2.0
// The width of the terminal, and its colours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gemmery::cli {

// Columns of the terminal that a file descriptor refers to. If it is not a terminal, or has no
// width, the environment variable COLUMNS; nothing if that is not set either.
std::optional<std::size_t> terminal_columns(int file) noexcept;

// The same if the file is a terminal, else nothing: output to files and pipes is not cut.
std::optional<std::size_t> columns_to_fit(int file) noexcept;

enum class Colour : std::uint8_t { green, red };

// The text in a colour if the file is a terminal with colours: not if NO_COLOR is set to
// anything (no-color.org) or TERM is "dumb".
std::string painted(std::string_view text, Colour colour, int file);

// Draws a bar on the terminal's present line of standard error, in place of one that stands there.
void draw_bar(std::string_view bar);

// Erases the bar, if one stands there. Whatever else is printed calls it before.
void erase_bar() noexcept;

}  // namespace gemmery::cli
