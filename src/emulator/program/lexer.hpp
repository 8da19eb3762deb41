// SPDX-License-Identifier: Apache-2.0
// A position in PTX text that skips blanks and comments and takes words, numbers and punctuation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gemmery::emulator {

struct Number {
  std::uint64_t bits = 0;  // for a float of 32 bits: its bit pattern
  bool is_float = false;
  bool is_double = false;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) noexcept : text_(text) { skip_blanks(); }

  std::uint32_t line() const noexcept { return line_; }  // the line of the next token
  bool is_at_end() const noexcept { return at_ == text_.size(); }
  // The next character that is neither blank nor comment; 0 at the end.
  char peek() const noexcept { return is_at_end() ? '\0' : text_[at_]; }
  bool accept(char mark) noexcept;
  void expect(char mark);
  bool is_at_number() const noexcept;

  // A name: letters, digits, _ $ %; with the dimension of a special register ("%tid.x").
  std::string_view take_identifier();
  // The word after a dot, which is the next character: "global", "shared::cta".
  std::string_view take_dotted_word();
  // True if a dot follows the name just taken without a blank.
  bool is_joined_to_dot() const noexcept;
  // Takes a ':' that is not the first one of "::".
  bool accept_label_colon() noexcept;
  Number take_number();                 // without sign
  std::uint64_t take_version_digits();  // the part of "9.0" before the dot
  std::string take_string();
  // Skips { … } with all contents; the opening brace is next.
  void skip_braces();
  // Skips text that is not parsed, up to a mark, which remains.
  void skip_to(char mark);

  // Throws Error with "PTX line N", what was expected, and what follows.
  [[noreturn]] void fail(std::string expected, std::string hint = {}) const;
  [[noreturn]] void fail_at(std::uint32_t line, std::string expected, std::string got,
                            std::string hint = {}) const;

 private:
  void skip_blanks() noexcept;
  bool skip_comment() noexcept;
  std::uint64_t take_digits(unsigned base);
  std::uint64_t take_hex_pattern(std::size_t digits);
  bool is_decimal_float() const noexcept;
  std::string describe_next() const;

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t end_of_last_ = 0;  // end of the last token
  std::uint32_t line_ = 1;
};

}  // namespace gemmery::emulator
