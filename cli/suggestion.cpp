// SPDX-License-Identifier: Apache-2.0
// Edit distance that counts the exchange of neighbours as one edit (optimal string alignment).
#include "cli/suggestion.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gemmery::cli {
namespace {

constexpr std::size_t longest_word = 64;  // longer words are not typing errors

std::size_t count_edits(std::string_view from, std::string_view to) {
  const std::size_t width = to.size() + 1;
  std::vector<std::size_t> edits((from.size() + 1) * width);
  const auto at = [&](std::size_t row, std::size_t column) -> std::size_t& {
    return edits[row * width + column];
  };
  for (std::size_t row = 0; row <= from.size(); ++row) at(row, 0) = row;
  for (std::size_t column = 0; column < width; ++column) at(0, column) = column;
  for (std::size_t row = 1; row <= from.size(); ++row) {
    for (std::size_t column = 1; column < width; ++column) {
      const bool differs = from[row - 1] != to[column - 1];
      at(row, column) = std::min({at(row - 1, column) + 1, at(row, column - 1) + 1,
                                  at(row - 1, column - 1) + (differs ? 1 : 0)});
      const bool is_exchange = row > 1 && column > 1 && from[row - 1] == to[column - 2] &&
                               from[row - 2] == to[column - 1];
      if (is_exchange) at(row, column) = std::min(at(row, column), at(row - 2, column - 2) + 1);
    }
  }
  return at(from.size(), to.size());
}

}  // namespace

std::string closest_word(std::string_view word, std::span<const std::string> candidates) {
  if (word.size() > longest_word) return {};
  std::string closest;
  std::size_t fewest = word.size() / 3 + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t edits = count_edits(word, candidate);
    if (edits < fewest) {
      fewest = edits;
      closest = candidate;
    }
  }
  return closest;
}

std::string did_you_mean(std::string_view word) {
  return word.empty() ? std::string() : "did you mean " + std::string(word) + "?";
}

}  // namespace gemmery::cli
