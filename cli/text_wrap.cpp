// SPDX-License-Identifier: Apache-2.0
#include "cli/text_wrap.hpp"

#include <algorithm>
#include <utility>

namespace gemmery::cli {
namespace {

constexpr std::size_t longest_name = 24;

// Where the text after the name begins: behind the first two spaces. The line's start without one.
std::size_t text_begin(std::string_view line) {
  const std::size_t indent = indent_of(line);
  const std::size_t gap = line.find("  ", indent);
  if (gap == std::string_view::npos || gap > indent + longest_name) return indent;
  return std::min(line.find_first_not_of(' ', gap), line.size());
}

}  // namespace

std::size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    text.remove_prefix(indent_of(text));
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

std::string wrap(std::string start, const std::vector<std::string>& words, std::size_t hang,
                 std::size_t columns) {
  std::string text;
  std::string line = std::move(start);
  bool has_word = false;
  for (const std::string& word : words) {
    if (has_word && line.size() + 1 + word.size() > columns) {
      text += line + '\n';
      line = std::string(hang, ' ');
      has_word = false;
    }
    line += (has_word ? " " : "") + word;
    has_word = true;
  }
  return text + line + '\n';
}

std::string wrapped(std::string_view line, std::size_t columns) {
  if (line.size() <= columns) return std::string(line);
  const std::size_t begin = text_begin(line);
  const std::size_t hang = begin == indent_of(line) ? begin + 2 : begin;
  std::string text =
      wrap(std::string(line.substr(0, begin)), words_of(line.substr(begin)), hang, columns);
  text.pop_back();
  return text;
}

}  // namespace gemmery::cli
