// SPDX-License-Identifier: Apache-2.0
// Words and numbers of PTX (PTX ISA, "Lexical Elements").
#include "emulator/program/lexer.hpp"

#include <bit>
#include <charconv>
#include <cstdio>

#include <gemmery/error.hpp>

namespace gemmery::emulator {
namespace {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_word(char c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         c == '%';
}
constexpr bool is_blank(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

// 16 if the character is not a digit.
constexpr unsigned digit_value(char c) noexcept {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return 16;
}

constexpr std::size_t shown_characters = 40;

std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, shown_characters)) {
    if (c == '\n' || c == '\r') break;
    if (c == '\t') {
      shown += ' ';
    } else if (c >= ' ' && c <= '~') {
      shown += c;
    } else {
      char code[8];
      std::snprintf(code, sizeof code, "\\x%02x", static_cast<unsigned char>(c));
      shown += code;
    }
  }
  return shown;
}

}  // namespace

bool Lexer::skip_comment() noexcept {
  const std::string_view rest = text_.substr(at_);
  if (rest.starts_with("//")) {
    const auto end = rest.find('\n');
    at_ = end == std::string_view::npos ? text_.size() : at_ + end;
    return true;
  }
  if (!rest.starts_with("/*")) return false;
  const auto end = rest.find("*/", 2);
  const std::size_t length = end == std::string_view::npos ? rest.size() : end + 2;
  for (const char c : rest.substr(0, length)) line_ += c == '\n';
  at_ += length;
  return true;
}

void Lexer::skip_blanks() noexcept {
  end_of_last_ = at_;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (is_blank(c)) {
      line_ += c == '\n';
      ++at_;
    } else if (c != '/' || !skip_comment()) {
      return;
    }
  }
}

bool Lexer::accept(char mark) noexcept {
  if (is_at_end() || text_[at_] != mark) return false;
  ++at_;
  skip_blanks();
  return true;
}

void Lexer::expect(char mark) {
  if (!accept(mark)) fail(std::string("'") + mark + "'");
}

bool Lexer::is_at_number() const noexcept { return is_digit(peek()); }

std::string_view Lexer::take_identifier() {
  const std::size_t begin = at_;
  while (at_ < text_.size() && is_word(text_[at_])) ++at_;
  if (at_ == begin) fail("a name");
  if (is_digit(text_[begin]))
    fail_at(line_, "a name", std::string(text_.substr(begin, at_ - begin)));
  const bool has_dimension = text_[begin] == '%' && at_ + 1 < text_.size() && text_[at_] == '.' &&
                             text_[at_ + 1] >= 'w' && text_[at_ + 1] <= 'z' &&
                             (at_ + 2 == text_.size() || !is_word(text_[at_ + 2]));
  if (has_dimension) at_ += 2;
  const std::string_view name = text_.substr(begin, at_ - begin);
  skip_blanks();
  return name;
}

std::string_view Lexer::take_dotted_word() {
  if (peek() != '.') fail("'.' and a word");
  const std::size_t begin = ++at_;
  while (at_ < text_.size()) {
    if (is_word(text_[at_])) {
      ++at_;
    } else if (text_.substr(at_).starts_with("::")) {
      at_ += 2;
    } else {
      break;
    }
  }
  if (at_ == begin) fail("a word behind '.'");
  const std::string_view word = text_.substr(begin, at_ - begin);
  skip_blanks();
  return word;
}

bool Lexer::is_joined_to_dot() const noexcept { return peek() == '.' && at_ == end_of_last_; }

bool Lexer::accept_label_colon() noexcept {
  if (text_.substr(at_).starts_with("::")) return false;
  return accept(':');
}

std::uint64_t Lexer::take_digits(unsigned base) {
  std::uint64_t value = 0;
  const std::size_t begin = at_;
  for (; at_ < text_.size() && digit_value(text_[at_]) < base; ++at_) {
    const unsigned digit = digit_value(text_[at_]);
    if (value > (~std::uint64_t{0} - digit) / base) fail("a number of at most 64 bits");
    value = value * base + digit;
  }
  if (at_ == begin) fail("a digit");
  return value;
}

std::uint64_t Lexer::take_hex_pattern(std::size_t digits) {
  const std::size_t begin = at_;
  const std::uint64_t bits = take_digits(16);
  if (at_ - begin != digits)
    fail_at(line_, std::to_string(digits) + " hexadecimal digits", std::to_string(at_ - begin));
  return bits;
}

bool Lexer::is_decimal_float() const noexcept {
  std::size_t at = at_;
  while (at < text_.size() && is_digit(text_[at])) ++at;
  return at < text_.size() && (text_[at] == '.' || text_[at] == 'e' || text_[at] == 'E');
}

Number Lexer::take_number() {
  if (!is_at_number()) fail("a number");
  Number number;
  const char kind = text_[at_] == '0' && at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  if (kind == 'f' || kind == 'F') {
    at_ += 2;
    number = {.bits = take_hex_pattern(8), .is_float = true};
  } else if (kind == 'd' || kind == 'D') {
    at_ += 2;
    number = {.bits = take_hex_pattern(16), .is_float = true, .is_double = true};
  } else if (kind == 'x' || kind == 'X') {
    at_ += 2;
    number.bits = take_digits(16);
  } else if (kind == 'b' || kind == 'B') {
    at_ += 2;
    number.bits = take_digits(2);
  } else if (is_decimal_float()) {
    double value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{}) fail("a floating-point number that a double can hold");
    at_ = static_cast<std::size_t>(end - text_.data());
    number = {.bits = std::bit_cast<std::uint64_t>(value), .is_float = true, .is_double = true};
  } else {
    number.bits = take_digits(is_digit(kind) ? 8 : 10);
  }
  if (!number.is_float && at_ < text_.size() && text_[at_] == 'U') ++at_;
  if (at_ < text_.size() && is_word(text_[at_])) fail("the end of a number");
  skip_blanks();
  return number;
}

std::uint64_t Lexer::take_version_digits() {
  const std::uint64_t digits = take_digits(10);
  skip_blanks();
  return digits;
}

std::string Lexer::take_string() {
  if (peek() != '"') fail("a string in quotes");
  std::string value;
  for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_) {
    if (text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
    value += text_[at_];
  }
  if (peek() != '"') fail("the closing quote of a string");
  ++at_;
  skip_blanks();
  return value;
}

void Lexer::skip_braces() {
  expect('{');
  for (std::size_t depth = 1; depth > 0;) {
    if (is_at_end()) fail("'}'");
    const char c = text_[at_++];
    depth += c == '{';
    depth -= c == '}';
    skip_blanks();
  }
}

void Lexer::skip_to(char mark) {
  while (!is_at_end() && text_[at_] != mark) {
    ++at_;
    skip_blanks();
  }
  if (is_at_end()) fail(std::string("'") + mark + "'");
}

std::string Lexer::describe_next() const {
  if (is_at_end()) return "the end of the text";
  return "\"" + printable(text_.substr(at_)) + "\"";
}

void Lexer::fail(std::string expected, std::string hint) const {
  fail_at(line_, std::move(expected), describe_next(), std::move(hint));
}

void Lexer::fail_at(std::uint32_t line, std::string expected, std::string got,
                    std::string hint) const {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "PTX line " + std::to_string(line),
               .expected = std::move(expected),
               .got = std::move(got),
               .hint = std::move(hint)});
}

}  // namespace gemmery::emulator
