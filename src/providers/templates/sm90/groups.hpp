// SPDX-License-Identifier: Apache-2.0
// Grouped problems in the sm90 family.
#pragma once

#include <gemmery/family.hpp>
#include <gemmery/problem.hpp>

#include <string>
#include <vector>

#include "providers/templates/sm90/design.hpp"

namespace gemmery::templates {

// The first constraint that a grouped query fails, in words; empty if some kernel may support it.
std::string find_sm90_group_failure(const Query& query);

// Why no tile fits a grouped problem that some kernel may support, in words.
std::string find_sm90_group_misfit(const GemmProblem& problem);

// Adds the kernels of a grouped query, with their predicted times.
void match_sm90_groups(const Family& family, const Query& query,
                       std::vector<RankedKernel>& kernels);

// Refuses a kernel of groups if the problem has none, or the reverse, and problems that no kernel
// of groups supports.
Status check_sm90_groups(const Sm90Tile& tile, const OperandRules& rules,
                         const GemmProblem& problem);

}  // namespace gemmery::templates
