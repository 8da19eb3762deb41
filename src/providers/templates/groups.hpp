// SPDX-License-Identifier: Apache-2.0
// Grouped problems in the families that find groups on the device: which they serve, what of
// operands' alignment holds within groups, and the parameters that kernels find groups by.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/groups.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/status.hpp>

#include <cstdint>
#include <string>

#include "device/abi/groups.hpp"

namespace gemmery::templates {

// Whether kernels find groups of this form: their sizes are on the device, and what is of no group
// stays as it is.
bool finds_groups(const Groups& groups) noexcept;

// What no kernel here does for a grouped problem; empty where there is nothing.
std::string find_group_failure(const GemmProblem& problem);

// What a kernel's stores do at the end of a group's rows or columns: they hold single elements
// along the extent that differs, or whole accesses up to the last one, which ends element by
// element.
enum class GroupStores : std::uint8_t { of_elements, clipped };

// The problem with the alignments that its operands have at the begin of every group.
GemmProblem as_seen_by_groups(GemmProblem problem, GroupStores stores = GroupStores::of_elements);

// The same number of groups of one size, for predictions.
GemmProblem average_groups(const GemmProblem& problem);

// Whether a kernel is of grouped products where the problem is, and its accesses are aligned within
// groups.
Status check_groups(bool finds_groups, const OperandRules& rules, const GemmProblem& problem,
                    GroupStores stores = GroupStores::of_elements);

// A kernel's tile in rows and columns of out.
struct GroupTileExtents {
  int m;
  int n;
};
bool fits_grouped_grid(const GroupTileExtents& tile, const GemmProblem& problem);

abi::GroupParams group_params(const GemmArguments& arguments);
// The most tiles that a launch may find.
unsigned most_tiles(const GroupTileExtents& tile, const GemmProblem& problem);

}  // namespace gemmery::templates
