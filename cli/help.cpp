// SPDX-License-Identifier: Apache-2.0
// Wraps the manual. Its indented blocks hold usage lines, examples, and items: a name, two spaces
// or more, and a description whose further lines are indented deeper.
#include "cli/help.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gemmery/version.hpp>

#include "cli/manual.hpp"
#include "cli/text_wrap.hpp"

namespace gemmery::cli {
namespace {

constexpr std::size_t block_indent = 4;
constexpr std::string_view shared_heading = "## Options of several verbs\n";

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string without_code_marks(std::string_view line) {
  std::string text(line);
  std::erase(text, '`');
  return text;
}

// Splits a usage line at spaces outside of brackets and braces; a part that is wider than `columns`
// is also split inside of its outermost bracket.
std::vector<std::string> usage_words(std::string_view text, std::size_t columns) {
  std::vector<std::string> words;
  std::string word;
  int depth = 0;
  for (const char character : text) {
    depth += (character == '[') - (character == ']');
    if (character != ' ' || depth > 0) {
      word += character;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(word);
  std::vector<std::string> fitting;
  for (const std::string& part : words) {
    const std::size_t bar = part.find(" | ");
    if (part.size() <= columns || bar == std::string::npos) {
      fitting.push_back(part);
      continue;
    }
    fitting.push_back(part.substr(0, bar + 2));
    fitting.push_back(part.substr(bar + 3));
  }
  return fitting;
}

// The position of an item's description in its line; npos if the line is not an item.
std::size_t description_of(std::string_view line) {
  const std::size_t gap = line.rfind("  ");
  return gap == std::string_view::npos || gap < indent_of(line) ? std::string_view::npos : gap + 2;
}

bool is_usage(std::string_view line) {
  return line.substr(indent_of(line)).starts_with("gemmery ") &&
         line.find(" [") != std::string_view::npos;
}

bool continues_usage(std::string_view line) {
  return indent_of(line) > block_indent && line[indent_of(line)] == '[';
}

// Receives a block's lines in order and appends their wrapped text.
class BlockWriter {
 public:
  BlockWriter(std::size_t columns, std::string& text) : columns_(columns), text_(text) {}
  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  void add(std::string_view line) {
    if (continues(line)) return join(line.substr(indent_of(line)));
    flush();
    begin(line);
  }

  void flush() {
    if (is_open_) text_ += wrap(start_, body_words(), hang_, columns_);
    is_open_ = false;
  }

 private:
  bool continues(std::string_view line) const {
    if (!is_open_) return false;
    if (hangs_as_usage_) return continues_usage(line);
    return indent_of(line) > block_indent &&
           line.find("  ", indent_of(line)) == std::string_view::npos;
  }

  std::vector<std::string> body_words() const {
    return hangs_as_usage_ ? usage_words(body_, columns_ - hang_) : words_of(body_);
  }

  void join(std::string_view words) { body_ += ' ' + without_code_marks(words); }

  void begin(std::string_view line) {
    const std::size_t indent = indent_of(line);
    const std::size_t description = description_of(line);
    if (description != std::string_view::npos && indent == block_indent) {
      open(line.substr(0, description), line.substr(description), description, false);
    } else if (is_usage(line)) {
      open(line.substr(0, indent), line.substr(indent), indent + 4, true);
    } else if (indent > block_indent && description == std::string_view::npos) {
      open(line.substr(0, indent), line.substr(indent), indent, false);
    } else {
      text_ += std::string(line) + '\n';
    }
  }

  void open(std::string_view start, std::string_view body, std::size_t hang, bool as_usage) {
    start_ = start;
    body_ = without_code_marks(body);
    // If an item's name leaves too little room, its description begins on the next line.
    hang_ = hang + 20 > columns_ ? 2 * block_indent : hang;
    hangs_as_usage_ = as_usage;
    is_open_ = true;
  }

  std::size_t columns_;
  std::string& text_;
  std::string start_;
  std::string body_;
  std::size_t hang_ = 0;
  bool hangs_as_usage_ = false;
  bool is_open_ = false;
};

std::string without_marks(std::string_view line) {
  return without_code_marks(line.substr(std::min(line.find_first_not_of("# "), line.size())));
}

// The items of those shared options of a verb that the verb's own section does not describe.
std::string shared_items(std::string_view section, std::span<const std::string> options) {
  const std::string_view page = manual_overview();
  const std::size_t begin = page.find(shared_heading);
  if (begin == std::string_view::npos) return {};
  std::string items;
  bool is_wanted = false;
  for (const std::string_view line : lines_of(page.substr(begin + shared_heading.size()))) {
    if (line.starts_with("## ")) break;
    if (line.starts_with("    --")) {
      const std::string name(
          line.substr(block_indent, line.find(' ', block_indent) - block_indent));
      is_wanted = std::ranges::find(options, name) != options.end() &&
                  section.find("\n    " + name + ' ') == std::string_view::npos;
    } else if (indent_of(line) <= block_indent) {
      is_wanted = false;
    }
    if (is_wanted) items += std::string(line) + '\n';
  }
  return items;
}

// Escapes text for troff: backslashes, hyphens, and characters at the start of a line that would
// make it a request.
std::string in_roff(std::string_view text) {
  std::string roff;
  bool begins_line = true;
  for (const char character : text) {
    if (begins_line && (character == '.' || character == '\'')) roff += "\\&";
    if (character == '\\')
      roff += "\\e";
    else if (character == '-')
      roff += "\\-";
    else
      roff += character;
    begins_line = character == '\n';
  }
  return roff;
}

}  // namespace

std::string as_text(std::string_view markdown, std::size_t columns) {
  std::string text;
  std::string paragraph;
  BlockWriter block(columns, text);
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) text += wrap({}, words_of(paragraph), 0, columns);
    paragraph.clear();
  };
  for (const std::string_view line : lines_of(markdown)) {
    if (indent_of(line) >= block_indent && indent_of(line) < line.size()) {
      end_paragraph();
      block.add(line);
      continue;
    }
    block.flush();
    if (line.empty() || line.starts_with('#')) {
      end_paragraph();
      text += without_marks(line) + '\n';
    } else {
      paragraph += without_marks(line) + ' ';
    }
  }
  block.flush();
  end_paragraph();
  return text;
}

std::string first_page(std::size_t columns) {
  const std::string_view page = manual_overview();
  return as_text(page.substr(0, page.find("\n## ")), columns);
}

std::string help_overview(std::size_t columns) { return as_text(manual_overview(), columns); }

std::string help_of_verb(std::string_view verb, std::span<const std::string> options,
                         std::size_t columns) {
  std::string page(manual_section(verb));
  const std::string shared = shared_items(page, options);
  if (!shared.empty()) page += "\nOptions that other verbs have, too:\n\n" + shared;
  return as_text(page, columns);
}

std::string as_man_page() {
  constexpr std::size_t columns = 72;  // man indents by 7
  std::string page =
      fmt::format(".TH GEMMERY 1 \"\" \"gemmery {}\" \"User Commands\"\n", version());
  page += ".SH NAME\ngemmery \\- finds, compiles and runs GEMM and convolution kernels\n";
  std::string section = "## Synopsis\n";
  const auto end_section = [&] {
    const std::size_t end = section.find('\n') + 1;
    page += ".SH " + in_roff(without_marks(section.substr(0, end - 1))) + '\n';
    page += ".nf\n" + in_roff(as_text(section.substr(end), columns)) + ".fi\n";
  };
  for (const std::string_view line : lines_of(manual())) {
    if (line.starts_with("# ")) continue;  // the page's title
    if (line.starts_with("## ")) {
      end_section();
      section.clear();
    }
    section += std::string(line) + '\n';
  }
  end_section();
  return page;
}

}  // namespace gemmery::cli
