// SPDX-License-Identifier: Apache-2.0
// Names of enumerators, in the order of their values.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace gemmery::operation {

// The value with this name.
template <class Value, std::size_t count>
std::optional<Value> find_name(const std::array<std::string_view, count>& names,
                               std::string_view word) noexcept {
  const auto found = std::ranges::find(names, word);
  if (found == names.end()) return std::nullopt;
  return static_cast<Value>(found - names.begin());
}

}  // namespace gemmery::operation
