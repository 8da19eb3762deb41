// SPDX-License-Identifier: Apache-2.0
// Rules that suppress findings of the emulator: KIND[, FILE[:LINE][, KERNEL]], one a line.
#pragma once

#include <gemmery/emulate.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace gemmery {

inline constexpr const char* results_differ = "results differ";

struct FindingRule {
  std::string text;  // as written
  std::string kind;  // these with * and ?
  std::string file = "*";
  std::uint32_t line = 0;  // 0: any; of the PTX where file is "ptx"
  std::string kernel = "*";

  // True if the rule matches the place of either side of the finding.
  bool matches(const EmulationFinding& finding) const;
};

// "sum<float>" of "void sum<float>(float*, int)".
std::string_view name_in_source(std::string_view signature) noexcept;

// Throws Error (invalid_argument), which names file and line, for a line that is no rule.
std::vector<FindingRule> parse_finding_rules(std::string_view text, const std::string& file);

// The rules in comments of a CUDA source, `// gemmery: allow KIND[: reason]`: for the comment's
// line, or, if the comment has the line to itself, for the next line of code. Throws like
// parse_finding_rules.
std::vector<FindingRule> find_comment_rules(std::string_view source, const std::string& file);

}  // namespace gemmery
