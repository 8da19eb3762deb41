// SPDX-License-Identifier: Apache-2.0
// The words of a problem's line, and errors about them.
#pragma once

#include <gemmery/error.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gemmery::grammar {

// A word of the line, with the column (from 1) at which it starts.
struct Word {
  std::string text;
  std::size_t column = 1;
};

// Throws Error with the word and its column.
[[noreturn]] void refuse(const Word& word, std::string expected, std::string hint = {},
                         ErrorKind kind = ErrorKind::invalid_argument);
// For a field that the line lacks.
[[noreturn]] void refuse_missing(const Word& kind, std::string expected, std::string hint = {});

// Splits at white space outside quotes. Removes the quotes; \" and \\ within them stand for " and
// \.
std::vector<Word> split_words(std::string_view line);

// The text within quotes, as split_words reads it.
std::string in_quotes(std::string_view value);

// The whole text as a number; nullopt for other text.
std::optional<std::int64_t> read_integer(std::string_view text);

// Splits `text` at `separator`.
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace gemmery::grammar
