// SPDX-License-Identifier: Apache-2.0
// Text without the blanks around it.
#pragma once

#include <cstddef>
#include <string_view>

namespace gemmery {

constexpr std::string_view trimmed(std::string_view text,
                                   std::string_view blanks = " \t\r") noexcept {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace gemmery
