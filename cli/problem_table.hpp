// SPDX-License-Identifier: Apache-2.0
// Problem lists as files: comma-separated values with the columns id, m, n, k, a_layout, b_layout
// and, where wanted, l.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace gemmery::cli {

struct NamedProblem {
  std::string id;    // of the file's row
  std::string line;  // in the problem grammar
};

// Every row with every type. Throws Error (invalid_argument) naming the file, and the row and
// column where there is one.
std::vector<NamedProblem> read_problem_table(const std::string& path,
                                             std::span<const std::string> dtypes);

}  // namespace gemmery::cli
