// SPDX-License-Identifier: Apache-2.0
// Splits the manual at its headings.
#include "cli/manual.hpp"

#include <string>

namespace gemmery::cli {
namespace {

constexpr std::string_view verb_heading = "\n## gemmery ";

}  // namespace

std::string_view manual_overview() { return manual().substr(0, manual().find(verb_heading)); }

std::string_view manual_section(std::string_view verb) {
  const std::string heading = std::string(verb_heading) + std::string(verb) + "\n";
  const std::size_t found = manual().find(heading);
  if (found == std::string_view::npos) return {};
  const std::size_t begin = found + 1;
  const std::size_t end = manual().find(verb_heading, begin);
  return manual().substr(begin, end == std::string_view::npos ? end : end - begin);
}

}  // namespace gemmery::cli
