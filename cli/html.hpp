// SPDX-License-Identifier: Apache-2.0
// HTML and SVG in which nothing is forgotten to be escaped: text and values of attributes become
// markup here and nowhere else.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gemmery::cli {

// Markup. Made by the functions below, joined by +.
class Html {
 public:
  Html() = default;
  const std::string& markup() const noexcept { return markup_; }
  bool is_empty() const noexcept { return markup_.empty(); }

  Html& operator+=(const Html& more) {
    markup_ += more.markup_;
    return *this;
  }
  friend Html operator+(Html left, const Html& right) { return std::move(left += right); }

 private:
  explicit Html(std::string markup) : markup_(std::move(markup)) {}
  friend Html text(std::string_view characters);
  friend Html trusted(std::string_view markup);

  std::string markup_;
};

// Text, escaped.
Html text(std::string_view characters);

// Markup that stands in the source of this program.
Html trusted(std::string_view markup);

struct Attribute {
  std::string_view name;
  std::string value;  // escaped when it is written
};

Html element(std::string_view tag, const std::vector<Attribute>& attributes,
             const Html& content = {});
Html element(std::string_view tag, const Html& content);

}  // namespace gemmery::cli
