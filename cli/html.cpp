// SPDX-License-Identifier: Apache-2.0
#include "cli/html.hpp"

namespace gemmery::cli {
namespace {

std::string escaped(std::string_view characters) {
  std::string markup;
  for (const char character : characters) {
    switch (character) {
      case '&':
        markup += "&amp;";
        break;
      case '<':
        markup += "&lt;";
        break;
      case '>':
        markup += "&gt;";
        break;
      case '"':
        markup += "&quot;";
        break;
      case '\'':
        markup += "&#39;";
        break;
      default:
        markup += character;
    }
  }
  return markup;
}

}  // namespace

Html text(std::string_view characters) { return Html(escaped(characters)); }

Html trusted(std::string_view markup) { return Html(std::string(markup)); }

Html element(std::string_view tag, const std::vector<Attribute>& attributes, const Html& content) {
  std::string head(tag);
  for (const Attribute& attribute : attributes) {
    head += ' ';
    head += attribute.name;
    head += "=\"" + escaped(attribute.value) + '"';
  }
  return trusted("<" + head + ">") + content + trusted("</" + std::string(tag) + ">");
}

Html element(std::string_view tag, const Html& content) { return element(tag, {}, content); }

}  // namespace gemmery::cli
