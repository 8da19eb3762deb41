// SPDX-License-Identifier: Apache-2.0
// Parses the compiler's output: resources of an entry, warnings, the lines of an error.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jit/compiler.hpp"

namespace gemmery::jit {

// The figures that ptxas -v prints for the entry; nothing if the log has none.
std::optional<CodeUsage> parse_usage(std::string_view log, std::string_view entry);

// The entries that the log of ptxas -v names, and those that PTX defines.
std::vector<std::string> entries_of_log(std::string_view log);
std::vector<std::string> entries_of_ptx(std::string_view ptx);

// The first warning: of the front end, of ptxas, or that wgmma instructions were serialised
// (C75xx), which costs most of a design's speed.
std::optional<std::string_view> find_warning(std::string_view log) noexcept;

// The first line that says why the source was refused; the first line of the log if none does.
std::string_view find_problem_line(std::string_view log) noexcept;

// The log without its first line equal to `told`, errors first: the rest of an error message after
// the problem line, without repeating it.
std::string errors_first(std::string_view log, std::string_view told);

}  // namespace gemmery::jit
