// SPDX-License-Identifier: Apache-2.0
// Writes with write(2), so that a closed pipe is noticed immediately.
#include "cli/output.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <gemmery/error.hpp>

#include "cli/terminal.hpp"
#include "cli/text_wrap.hpp"

namespace gemmery::cli {
namespace {

constexpr std::size_t buffer_bytes = 1 << 16;
constexpr std::string_view column_gap = "  ";
constexpr std::size_t least_cell = 16;

std::string dump(const Record& value) {
  // Command-line arguments may be invalid UTF-8.
  return value.dump(-1, ' ', false, Record::error_handler_t::replace);
}

// {"tile":"64x64x8","stages":"2"} -> tile=64x64x8;stages=2      ["sm_80","sm_90a"] -> sm_80;sm_90a
std::string flat(const Record& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_structured()) return dump(value);
  std::string text;
  for (const auto& [key, item] : value.items()) {
    if (!text.empty()) text += ';';
    if (value.is_object()) text += key + '=';
    text += flat(item);
  }
  return text;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char character : text) quoted += character == '"' ? "\"\"" : std::string(1, character);
  return quoted + '"';
}

// Columns on the screen: the number of UTF-8 characters.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

[[noreturn]] void throw_write_error(int number) {
  if (number == EPIPE) throw OutputClosed{};
  throw Error({.kind = ErrorKind::io,
               .operand = "standard output",
               .expected = "a file that can be written",
               .got = std::strerror(number)});
}

void write_fully(std::string_view text) {
  erase_bar();
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_write_error(errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

bool quiet = false;  // set once, before the verb runs

}  // namespace

void Output::write(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= buffer_bytes) flush();
}

void Output::write_line(std::string_view text) {
  buffer_ += text;
  write("\n");
}

void Output::write_prose(std::string_view line) { write_line(fitted_prose(line, STDOUT_FILENO)); }

void Output::write_record(const Record& record) {
  if (format_ == Format::csv) {
    write_csv_row(record);
  } else {
    write_line(dump(record));
  }
}

void Output::write_csv_row(const Record& record) {
  std::string header;
  std::string row;
  for (const auto& [key, value] : record.items()) {
    const std::string_view comma = header.empty() ? "" : ",";
    header += std::string(comma) + csv_field(key);
    row += std::string(comma) + csv_field(flat(value));
  }
  if (!has_header_) write_line(header);
  has_header_ = true;
  write_line(row);
}

void Output::flush() {
  // Emptied before the write, so that a failed write is not repeated.
  const std::string pending = std::exchange(buffer_, {});
  write_fully(pending);
}

Table::Table(std::initializer_list<std::string_view> headings) {
  for (const std::string_view heading : headings) {
    const bool is_right = heading.starts_with('>');
    const bool is_prose = heading.starts_with('~');
    columns_.push_back(
        {std::string(heading.substr(is_right || is_prose ? 1 : 0)), is_right, is_prose});
  }
}

void Table::add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> result;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    std::size_t most = width(columns_[column].heading);
    for (const auto& row : rows_) most = std::max(most, width(row[column]));
    result.push_back(most);
  }
  return result;
}

namespace {

// The end of a name's family and version: behind the first of its words that ends in a digit, as in
// "sm90v7" and "host_onednn_v1". 0 if there is none among the first three.
std::size_t family_end(std::string_view name) {
  std::size_t end = 0;
  for (int word = 0; word < 3; ++word) {
    end = name.find('_', word == 0 ? 0 : end + 1);
    if (end == std::string_view::npos || end == 0) return 0;
    if (name[end - 1] >= '0' && name[end - 1] <= '9') return end;
  }
  return 0;
}

}  // namespace

std::string shortened(const std::string& text, std::size_t columns) {
  constexpr std::string_view gap = "...";
  if (text.size() <= columns || columns <= gap.size()) return text;
  const std::size_t kept = columns - gap.size();
  const std::size_t family = family_end(text);
  const std::size_t head = family > 0 && 2 * family <= kept ? family : kept / 2;
  return text.substr(0, head) + std::string(gap) + text.substr(text.size() - (kept - head));
}

std::string Table::fitted(const std::string& last_cell, std::size_t begin,
                          std::optional<std::size_t> columns) const {
  if (!columns) return last_cell;
  const std::size_t room = std::max(*columns > begin ? *columns - begin : 0, least_cell);
  if (!columns_.back().is_prose) return shortened(last_cell, room);
  std::string text;
  std::vector<std::string> words = words_of(last_cell);
  for (std::string& word : words)
    word = shortened(word, room - 2);  // it may stand on a further line
  text = wrap(std::string(begin, ' '), words, begin + 2, begin + room);
  text.pop_back();
  return text.substr(begin);
}

void Table::print(Output& output, std::optional<std::size_t> columns) const {
  const std::vector<std::size_t> column_widths = widths();
  std::size_t before_last = 0;
  for (std::size_t column = 0; column + 1 < columns_.size(); ++column)
    before_last += column_widths[column] + column_gap.size();
  const auto print_row = [&](auto&& cell_of) {
    std::string line;
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      const std::string& cell = cell_of(column);
      const std::string padding(column_widths[column] - width(cell), ' ');
      const bool is_last = column + 1 == columns_.size();
      if (is_last && !columns_[column].is_right_aligned) {
        line += fitted(cell, before_last, columns);
        continue;
      }
      line += columns_[column].is_right_aligned ? padding + cell : cell + padding;
      if (!is_last) line += column_gap;
    }
    output.write_line(line);
  };
  print_row([&](std::size_t column) -> const std::string& { return columns_[column].heading; });
  for (const auto& row : rows_)
    print_row([&](std::size_t column) -> const std::string& { return row[column]; });
}

void tell(std::string_view message) {
  erase_bar();
  // Not fmt::print, which throws if standard error is closed; then the message is lost.
  const std::string line = std::string(message) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string fitted_prose(std::string_view text, int file) {
  const auto columns = columns_to_fit(file);
  return columns ? wrapped(text, *columns) : std::string(text);
}

void tell_prose(std::string_view message) { tell(fitted_prose(message, STDERR_FILENO)); }

void tell_note(std::string_view message) {
  if (!quiet) tell_prose(message);
}
void be_quiet() noexcept { quiet = true; }
bool is_quiet() noexcept { return quiet; }

}  // namespace gemmery::cli
