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

// The reader has closed the pipe: nothing is left to do, and it is no error.
struct OutputClosed : std::exception {
  const char* what() const noexcept override { return "standard output was closed"; }
};

// Buffers standard output. Throws OutputClosed if its reader has closed it, Error (io) if it cannot
// be written.
class Output {
 public:
  explicit Output(Format format) : format_(format) {}

  Format format() const noexcept { return format_; }
  bool is_text() const noexcept { return format_ == Format::text; }
  bool is_json() const noexcept { return format_ == Format::json; }

  void write(std::string_view text);
  void write_line(std::string_view text);

  // One JSON object or one CSV row, by the format. CSV takes its header from the first record;
  // nested values become one field.
  void write_record(const Record& record);

  // Call at the end: reports errors that the destructor cannot report.
  void flush();

 private:
  void write_csv_row(const Record& record);

  Format format_;
  bool has_header_ = false;
  std::string buffer_;
};

// Rows of text, printed with aligned columns. A column whose heading begins with '>' is
// right-aligned.
class Table {
 public:
  explicit Table(std::initializer_list<std::string_view> headings);
  void add_row(std::vector<std::string> cells);
  // The cells of the last column are shortened in the middle where rows would be wider than this;
  // 16 characters are always left.
  void print(Output& output, std::optional<std::size_t> columns = std::nullopt) const;

 private:
  struct Column {
    std::string heading;
    bool is_right_aligned;
  };
  std::vector<std::size_t> widths() const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// At most this many columns: the middle becomes "...". For text in ASCII, as names are.
std::string shortened(const std::string& text, std::size_t columns);

// One line on standard error.
void tell(std::string_view message);

// The same for what is no error: nothing once `be_quiet` was called.
void tell_note(std::string_view message);
void be_quiet() noexcept;
bool is_quiet() noexcept;

}  // namespace gemmery::cli
