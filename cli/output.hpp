// SPDX-License-Identifier: Apache-2.0
// Standard output: text, aligned tables, JSON lines, comma-separated values. Fast enough for a
// million lines.
#pragma once

#include <exception>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/command_line.hpp"

namespace gemmery::cli {

using Record = nlohmann::ordered_json;

// Thrown when the reader has closed the pipe. The program then ends without an error.
struct OutputClosed : std::exception {
  const char* what() const noexcept override { return "standard output was closed"; }
};

// Buffers standard output. Throws OutputClosed if its reader has closed it, Error (io) if a write
// fails.
class Output {
 public:
  explicit Output(Format format) : format_(format) {}

  Format format() const noexcept { return format_; }
  bool is_text() const noexcept { return format_ == Format::text; }
  bool is_json() const noexcept { return format_ == Format::json; }

  void write(std::string_view text);
  void write_line(std::string_view text);

  // A line of prose. On a terminal it is wrapped at the terminal's width.
  void write_prose(std::string_view line);

  // Writes one JSON object or one CSV row, by the format. The first record determines the header of
  // the CSV; a nested value becomes one field.
  void write_record(const Record& record);

  // Must be called at the end: throws errors, which the destructor cannot.
  void flush();

 private:
  void write_csv_row(const Record& record);

  Format format_;
  bool has_header_ = false;
  std::string buffer_;
};

// Rows of text, printed with aligned columns. A column whose heading begins with '>' is
// right-aligned; a last one whose heading begins with '~' holds prose.
class Table {
 public:
  explicit Table(std::initializer_list<std::string_view> headings);
  void add_row(std::vector<std::string> cells);
  // If a row would be wider than `columns`, its last cell is wrapped if it is prose, else
  // shortened, to no less than 16 characters.
  void print(Output& output, std::optional<std::size_t> columns = std::nullopt) const;

 private:
  struct Column {
    std::string heading;
    bool is_right_aligned;
    bool is_prose;
  };
  std::vector<std::size_t> widths() const;
  std::string fitted(const std::string& last_cell, std::size_t begin,
                     std::optional<std::size_t> columns) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// A name of at most this many columns. "..." replaces what follows its family and version, such as
// types and alignments; of a name without them, the middle. For ASCII text.
std::string shortened(const std::string& text, std::size_t columns);

// Prose as it is printed on standard output or error: wrapped at the width of a terminal.
std::string fitted_prose(std::string_view text, int file);

// Prints one line on standard error.
void tell(std::string_view message);

// The same for prose: on a terminal it is wrapped at the terminal's width.
void tell_prose(std::string_view message);

// The same for messages that are not errors: prints nothing after a call of `be_quiet`.
void tell_note(std::string_view message);
void be_quiet() noexcept;
bool is_quiet() noexcept;

}  // namespace gemmery::cli
