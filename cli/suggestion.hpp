// SPDX-License-Identifier: Apache-2.0
// What a mistyped word was probably meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gemmery::cli {

// The candidate that needs the fewest edits (insert, remove, replace or exchange neighbours), at
// most one for every three characters of the word; empty if none is as close.
std::string closest_word(std::string_view word, std::span<const std::string> candidates);

// "did you mean WORD?", or nothing for no word.
std::string did_you_mean(std::string_view word);

}  // namespace gemmery::cli
