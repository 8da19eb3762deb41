// SPDX-License-Identifier: Apache-2.0
// Suggestions for mistyped words.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gemmery::cli {

// The candidate with the fewest edits (insert, remove, replace or exchange neighbours), at most one
// per three characters of the word; empty if no candidate is that close.
std::string closest_word(std::string_view word, std::span<const std::string> candidates);

// "did you mean WORD?"; empty for an empty word.
std::string did_you_mean(std::string_view word);

}  // namespace gemmery::cli
