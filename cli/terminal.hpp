// SPDX-License-Identifier: Apache-2.0
// The width of the terminal.
#pragma once

#include <cstddef>
#include <optional>

namespace gemmery::cli {

// Columns of the terminal behind a file descriptor; COLUMNS of the environment where it is no
// terminal or does not say; nothing where that is not set either.
std::optional<std::size_t> terminal_columns(int file) noexcept;

// The same where the file is a terminal: what goes to files and pipes is not cut.
std::optional<std::size_t> columns_to_fit(int file) noexcept;

}  // namespace gemmery::cli
