// SPDX-License-Identifier: Apache-2.0
#include "operation/grammar_words.hpp"

#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace gemmery::grammar {
namespace {

bool is_space(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r';
}

}  // namespace

void refuse(const Word& word, std::string expected, std::string hint, ErrorKind kind) {
  throw Error({.kind = kind,
               .operand = fmt::format("problem, column {}", word.column),
               .expected = std::move(expected),
               .got = fmt::format("\"{}\"", word.text.substr(0, 100)),
               .hint = std::move(hint)});
}

void refuse_missing(const Word& kind, std::string expected, std::string hint) {
  refuse({.text = "none", .column = kind.column}, std::move(expected), std::move(hint));
}

std::vector<Word> split_words(std::string_view line) {
  std::vector<Word> words;
  std::size_t at = 0;
  while (true) {
    while (at < line.size() && is_space(line[at])) ++at;
    if (at == line.size()) return words;
    Word word{.text = {}, .column = at + 1};
    bool is_quoted = false;
    for (; at < line.size() && (is_quoted || !is_space(line[at])); ++at) {
      if (line[at] == '"') {
        is_quoted = !is_quoted;
      } else if (is_quoted && line[at] == '\\' && at + 1 < line.size()) {
        word.text += line[++at];
      } else {
        word.text += line[at];
      }
    }
    if (is_quoted) refuse(word, "a closing quote");
    words.push_back(std::move(word));
  }
}

std::string in_quotes(std::string_view value) {
  std::string text = "\"";
  for (const char letter : value) {
    if (letter == '"' || letter == '\\') text += '\\';
    text += letter;
  }
  return text + "\"";
}

std::optional<std::int64_t> read_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [after, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || after != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace gemmery::grammar
