// SPDX-License-Identifier: Apache-2.0
// Grouped problems in the simt family: which it serves, what of its operands' alignment holds
// within groups, and the parameters that kernels find groups by.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/groups.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/status.hpp>

#include <string>

#include "device/abi/groups.hpp"
#include "providers/templates/simt/design.hpp"

namespace gemmery::templates {

// Whether kernels find groups of this form: their sizes are on the device, and what is of no group
// stays as it is.
bool finds_groups(const Groups& groups) noexcept;

// What no kernel here does for a grouped problem; empty where there is nothing.
std::string find_group_failure(const GemmProblem& problem);

// The problem with the alignments that its operands have at the begin of every group, and the
// single elements that stores are of where a group may end anywhere.
GemmProblem as_seen_by_groups(GemmProblem problem);

// The same number of groups of one size, for predictions.
GemmProblem average_groups(const GemmProblem& problem);

// Whether a kernel is of grouped products where the problem is, and its accesses are aligned within
// groups.
Status check_groups(const SimtTile& tile, const OperandRules& rules, const GemmProblem& problem);

bool fits_grouped_grid(const SimtTile& tile, const GemmProblem& problem);

abi::GroupParams group_params(const GemmArguments& arguments);
// The most tiles that a launch may find.
unsigned most_tiles(const SimtTile& tile, const GemmProblem& problem);

}  // namespace gemmery::templates
