// SPDX-License-Identifier: Apache-2.0
// Splits text into tokens.
#include "epilogue/lexer.hpp"

#include <fmt/format.h>
#include <gemmery/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

namespace gemmery::epilogue {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_in_name(char c) { return starts_name(c) || is_digit(c); }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f'; }

// Longer operators before their prefixes. Some are recognised only to be refused by name.
constexpr std::array<std::string_view, 47> signs{
    "**=", "//=", "<<=", ">>=", "**", "//", "<<", ">>", "<=", ">=", "==", "!=",
    "&&",  "||",  "->",  ":=",  "+=", "-=", "*=", "/=", "%=", "@=", "&=", "|=",
    "^=",  "++",  "+",   "-",   "*",  "/",  "<",  ">",  "=",  "!",  "(",  ")",
    "[",   "]",   "{",   "}",   ",",  ":",  ".",  "%",  "@",  "?",  "&",
};
constexpr std::string_view lone_signs = "|^~";

// A word as an error shows it: unprintable characters as codes, long words cut.
std::string shown(std::string_view word) {
  std::string result;
  for (const char c : word.substr(0, 40)) {
    const auto code = static_cast<unsigned char>(c);
    if (code >= 0x20 && code < 0x7f)
      result += c;
    else
      result += fmt::format("\\x{:02x}", code);
  }
  return word.size() > 40 ? result + "..." : result;
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> read() {
    while (skip_blanks()) tokens_.push_back(next());
    tokens_.push_back(here(TokenKind::end, 0));
    return std::move(tokens_);
  }

 private:
  bool is_at_end() const { return at_ == text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  Token here(TokenKind kind, std::size_t length) const {
    return {.kind = kind,
            .text = text_.substr(at_, length),
            .line = line_,
            .column = static_cast<int>(at_ - line_start_) + 1,
            .is_after_space = is_after_space_};
  }

  Token take(TokenKind kind, std::size_t length) {
    const Token token = here(kind, length);
    at_ += length;
    is_after_space_ = false;
    return token;
  }

  void begin_line() {
    ++line_;
    line_start_ = at_;
  }

  // Skips blanks, comments and, within parentheses, line ends. False at the end of the text.
  bool skip_blanks() {
    for (; !is_at_end(); ++at_) {
      if (peek() == '#') at_ = std::min(text_.find('\n', at_), text_.size());
      if (is_at_end()) break;
      if (peek() == '\n' && open_ > 0) {
        ++at_;
        begin_line();
        --at_;
      } else if (!is_blank(peek())) {
        break;
      }
      is_after_space_ = true;
    }
    return !is_at_end();
  }

  Token next() {
    const char c = peek();
    if (c == '\n') {
      const Token token = take(TokenKind::separator, 1);
      begin_line();
      return token;
    }
    if (c == ';') return take(TokenKind::separator, 1);
    if (starts_name(c)) return name();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    if (c == '"' || c == '\'') return string();
    return sign();
  }

  Token name() {
    std::size_t length = 1;
    while (is_in_name(peek(length))) ++length;
    return take(TokenKind::name, length);
  }

  std::size_t digits_from(std::size_t ahead) const {
    while (is_digit(peek(ahead))) ++ahead;
    return ahead;
  }

  Token number() {
    std::size_t length = digits_from(0);
    if (peek(length) == '.') length = digits_from(length + 1);
    if (peek(length) == 'e' || peek(length) == 'E') {
      const std::size_t sign = peek(length + 1) == '+' || peek(length + 1) == '-' ? 1 : 0;
      if (is_digit(peek(length + 1 + sign))) length = digits_from(length + 1 + sign);
    }
    if (is_in_name(peek(length)) || peek(length) == '.') {
      while (is_in_name(peek(length)) || peek(length) == '.') ++length;
      refuse_token(here(TokenKind::number, length), "a decimal number such as 2, 0.5 or 1e-3");
    }
    Token token = take(TokenKind::number, length);
    token.number = value_of(token);
    return token;
  }

  static double value_of(const Token& token) {
    double value = 0;
    const char* const last = token.text.data() + token.text.size();
    const auto [end, fault] = std::from_chars(token.text.data(), last, value);
    if (fault == std::errc::result_out_of_range)
      refuse_token(token, "a number that float64 holds", "infinity is written inf");
    if (fault != std::errc() || end != last)
      refuse_token(token, "a decimal number such as 2, 0.5 or 1e-3");
    return value;
  }

  Token string() {
    const std::string_view triple = peek() == '"' ? "\"\"\"" : "'''";
    const bool is_long = text_.substr(at_, 3) == triple;
    const std::string_view quote = triple.substr(0, is_long ? 3 : 1);
    const std::size_t end = text_.find(quote, at_ + quote.size());
    const std::size_t line_end = is_long ? std::string_view::npos : text_.find('\n', at_);
    if (end == std::string_view::npos || end > line_end)
      refuse_token(here(TokenKind::string, quote.size()), "the end of the string that begins here");
    const Token token = here(TokenKind::string, end + quote.size() - at_);
    for (const char c : token.text) {
      ++at_;
      if (c == '\n') begin_line();
    }
    is_after_space_ = false;
    return token;
  }

  Token sign() {
    for (const std::string_view sign : signs) {
      if (!text_.substr(at_).starts_with(sign)) continue;
      if (sign == "(" || sign == "[" || sign == "{") ++open_;
      if ((sign == ")" || sign == "]" || sign == "}") && open_ > 0) --open_;
      return take(TokenKind::sign, sign.size());
    }
    if (lone_signs.find(peek()) != std::string_view::npos) return take(TokenKind::sign, 1);
    const auto letter = static_cast<unsigned char>(peek());
    refuse_token(here(TokenKind::sign, letter < 0x80 ? 1 : utf8_length()),
                 "a name, a number or a sign of the grammar",
                 letter < 0x80 ? "" : "programs are written in ASCII");
  }

  // The length of the character that begins here, so that an error does not show half of it.
  std::size_t utf8_length() const {
    std::size_t length = 1;
    while (length < 4 && (static_cast<unsigned char>(peek(length)) & 0xc0U) == 0x80U) ++length;
    return length;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
  int open_ = 0;  // open parentheses
  bool is_after_space_ = false;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> read_tokens(std::string_view text) {
  if (text.size() > most_text)
    throw Error({.kind = ErrorKind::invalid_argument,
                 .operand = "epilogue",
                 .expected = fmt::format("a text of at most {} bytes", most_text),
                 .got = fmt::format("{} bytes", text.size())});
  return Lexer(text).read();
}

void refuse_token(const Token& token, std::string expected, std::string hint, ErrorKind kind) {
  std::string word = "the end";
  if (token.kind == TokenKind::separator)
    word = token.text == ";" ? "';'" : "the end of the line";
  else if (token.kind != TokenKind::end)
    word = '\'' + shown(token.text) + '\'';
  throw Error({.kind = kind,
               .operand = "epilogue",
               .expected = std::move(expected),
               .got = fmt::format("{} at line {}, column {}", word, token.line, token.column),
               .hint = std::move(hint)});
}

}  // namespace gemmery::epilogue
