// SPDX-License-Identifier: Apache-2.0
// Problem lists in files: comma-separated values with the columns id, m, n, k, a_layout, b_layout
// and optionally l.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace gemmery::cli {

struct NamedProblem {
  std::string id;    // the row's id
  std::string line;  // in the problem grammar
};

// Returns every row with every type. Throws Error (invalid_argument), which names the file and, if
// applicable, the row and column.
std::vector<NamedProblem> read_problem_table(const std::string& path,
                                             std::span<const std::string> dtypes);

}  // namespace gemmery::cli
