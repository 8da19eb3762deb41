// SPDX-License-Identifier: Apache-2.0
// Wraps prose at spaces.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gemmery::cli {

// The number of spaces before the first other character.
std::size_t indent_of(std::string_view line);

// Splits text at spaces.
std::vector<std::string> words_of(std::string_view text);

// Wraps the words. The first line begins with `start`, further lines are indented by `hang`. Ends
// with a line break.
std::string wrap(std::string start, const std::vector<std::string>& words, std::size_t hang,
                 std::size_t columns);

// Wraps one line, without a line break at its end. Further lines stand below the text that follows
// the line's name ("time      8 ms (median"), or two columns deeper than the line if it has none.
std::string wrapped(std::string_view line, std::size_t columns);

}  // namespace gemmery::cli
