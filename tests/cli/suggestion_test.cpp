// SPDX-License-Identifier: Apache-2.0
// Suggestions for mistyped words.
#include "cli/suggestion.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gemmery::cli {
namespace {

const std::vector<std::string> words{"list", "verify", "--device", "--design", "h100", "h200"};

struct Row {
  const char* word;
  const char* closest;
};

TEST(Suggestion, is_the_word_with_the_fewest_edits) {
  constexpr Row rows[] = {{"lst", "list"},           {"lsit", "list"},         {"verfiy", "verify"},
                          {"--devcie", "--device"},  {"--desing", "--design"}, {"h20", "h200"},
                          {"--devices", "--device"}, {"list", "list"}};
  for (const Row& row : rows) EXPECT_EQ(closest_word(row.word, words), row.closest) << row.word;
}

TEST(Suggestion, is_empty_where_nothing_is_close) {
  for (const char* word : {"", "a", "dance", "toaster", "--loud"})
    EXPECT_EQ(closest_word(word, words), "") << word;
  EXPECT_EQ(closest_word(std::string(100'000, 'l'), words), "");
  EXPECT_EQ(did_you_mean(""), "");
}

}  // namespace
}  // namespace gemmery::cli
