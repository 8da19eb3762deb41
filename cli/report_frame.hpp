// SPDX-License-Identifier: Apache-2.0
// The frame of a report: head, style, and the parts that every page has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/bench_record.hpp"
#include "cli/html.hpp"

namespace gemmery::cli {

std::string whole_page(std::string_view title, const Html& content);

// A titled part of the page with a sentence that says how to read it.
Html section(std::string_view title, std::string_view words, const Html& content);

// Names and values, such as the facts of a record.
Html facts_list(const std::vector<std::pair<std::string, std::string>>& facts);

// A table; cells of columns whose heading begins with '>' are numbers.
class HtmlTable {
 public:
  HtmlTable(std::string_view caption, std::vector<std::string> headings);
  void add_row(const std::vector<std::string>& cells);
  Html html() const;

 private:
  bool is_number(std::size_t column) const { return headings_[column].starts_with('>'); }

  std::string caption_;
  std::vector<std::string> headings_;
  Html rows_;
};

}  // namespace gemmery::cli
