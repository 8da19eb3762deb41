// SPDX-License-Identifier: Apache-2.0
// Results as text: tables of a TOML file, each with a digest of itself, by which one that was not
// written completely is recognised.
#pragma once

#include <gemmery/tuning_entry.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gemmery::tuning {

// The comment at the head of a file.
std::string_view file_head();

// "[[tuning]]" and its lines. Throws Error (unsupported) if a text of the entry has a line end or
// an apostrophe, which no line of the grammar and no name of a kernel has.
std::string print_entry(const TuningEntry& entry);

struct ReadEntry {
  TuningEntry entry;
  std::string text;  // as it stands in the file
};

struct FileContent {
  std::vector<ReadEntry> entries;  // in the order of the file
  std::size_t faulty = 0;          // tables that were changed, or not written completely
};

// Text that is no table is skipped.
FileContent parse_entries(std::string_view text);

}  // namespace gemmery::tuning
