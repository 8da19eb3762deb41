// SPDX-License-Identifier: Apache-2.0
#include "jit/inline_headers.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "core/trimmed.hpp"
#include "jit/embedded.hpp"

namespace gemmery::jit {
namespace {

constexpr std::string_view once = "#pragma once";

// NAME of a line `#include <NAME>`; empty for other lines.
std::string_view included_name(std::string_view line) {
  constexpr std::string_view begin = "#include <";
  line = trimmed(line);
  if (!line.starts_with(begin)) return {};
  line.remove_prefix(begin.size());
  return line.substr(0, std::min(line.find('>'), line.size()));
}

std::optional<std::string_view> find_header(std::string_view name) {
  for (const EmbeddedHeader& header : embedded_headers())
    if (header.name == name) return std::string_view(header.text, header.size);
  return std::nullopt;
}

class Inliner {
 public:
  void add(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      add_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void add_line(std::string_view line) {
    if (trimmed(line) == once) return;
    const std::string_view name = included_name(line);
    const auto header = name.empty() ? std::nullopt : find_header(name);
    if (!header) {
      text_ += line;
      text_ += '\n';
    } else if (header->find(once) == std::string_view::npos || seen_.emplace(name).second) {
      text_ += fmt::format("// --- <{}>\n", name);
      add(*header);
      text_ += fmt::format("// --- end of <{}>\n", name);
    }
  }

  std::string text_;
  std::set<std::string, std::less<>> seen_;
};

}  // namespace

std::string inline_headers(std::string_view source) {
  Inliner inliner;
  inliner.add(source);
  return inliner.take();
}

}  // namespace gemmery::jit
