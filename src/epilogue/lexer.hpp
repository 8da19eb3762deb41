// SPDX-License-Identifier: Apache-2.0
// The tokens of a program's text with their places, and errors about them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gemmery/error.hpp>

namespace gemmery::epilogue {

enum class TokenKind : unsigned char { name, number, string, sign, separator, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;  // a part of the source text
  int line = 1;
  int column = 1;
  double number = 0;
  bool is_after_space = false;
};

// The longest text that is accepted, in bytes.
inline constexpr std::size_t most_text = 65536;

// Operators of one or two characters, numbers, names, strings. A separator is ';' or, outside of
// parentheses, a line end. The last token is `end`. Throws Error (invalid_argument).
std::vector<Token> read_tokens(std::string_view text);

// Throws Error: what was expected, the word with its line and column, the hint.
[[noreturn]] void refuse_token(const Token& token, std::string expected, std::string hint = "",
                               ErrorKind kind = ErrorKind::invalid_argument);

}  // namespace gemmery::epilogue
