// SPDX-License-Identifier: Apache-2.0
// Grouped problems in the families whose kernels find groups on the device: the problems that they
// support, the alignments of operands within groups, and the kernel parameters.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/device.hpp>
#include <gemmery/groups.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/status.hpp>

#include <cstdint>
#include <span>
#include <string>

#include "device/abi/epilogue.hpp"
#include "device/abi/groups.hpp"

namespace gemmery::templates {

// True if the sizes are labels: each row or column has one, and kernels read it for a tile.
bool has_labels(const Groups& groups) noexcept;

// True for the forms that every family with groups takes: parts of tensors or of stacks, with sizes
// on the device or, except labels, in host memory; then kernels get a table of them.
bool divides_tensors(const Groups& groups) noexcept;

// True if elements of out in no group must become zero. If K differs, there are no such elements.
bool clears_outside(const Groups& groups) noexcept;
// Why kernels that clear elements of no group do not support a problem; empty if they do.
std::string find_outside_failure(const GemmProblem& problem);

// Why no kernel here supports a grouped problem, in words; empty if some do.
std::string find_group_failure(const GemmProblem& problem);

// Why a table of groups does not fit the launch parameters beside the operands of an epilogue;
// `bytes`: the parameters without these operands.
std::string find_table_failure(const GemmProblem& problem, std::size_t bytes);

// How a kernel stores at the end of a group: single elements along the extent that differs, or
// whole accesses up to the last one, which is stored element by element.
enum class GroupStores : std::uint8_t { of_elements, clipped };

// The problem with the alignments that its operands have at the beginning of every group.
GemmProblem as_seen_by_groups(GemmProblem problem, GroupStores stores = GroupStores::of_elements);

// The problem with all groups of the average size, for predictions.
GemmProblem average_groups(const GemmProblem& problem);

// The time of a block to find its tiles in the sizes: for every 32 groups a round trip to L2 and a
// scan, from the start for each tile unless the scan continues where the last tile was found.
// Estimated, not measured.
double finding_us(std::int64_t groups, double tiles_of_block, bool goes_on,
                  const DeviceInfo& device);

// Refuses a kernel that is not grouped if the problem is, or the reverse, and accesses that are not
// aligned within groups.
Status check_groups(bool finds_groups, const OperandRules& rules, const GemmProblem& problem,
                    GroupStores stores = GroupStores::of_elements);

// A kernel's tile in rows and columns of out.
struct GroupTileExtents {
  int m;
  int n;
};
bool fits_grouped_grid(const GroupTileExtents& tile, const GemmProblem& problem);
// True if the label of a tile's first row (or column) applies to the whole tile; true without
// labels.
bool fits_labels(const GroupTileExtents& tile, const GemmProblem& problem);
// The failed constraint of a problem with labels that fits none of these tiles.
std::string find_label_failure(std::span<const GroupTileExtents> tiles, const GemmProblem& problem);

// `is_turned`: the kernel computes the transpose of out.
abi::GroupParams group_params(const GemmArguments& arguments, bool is_turned = false);
// The table of sizes in host memory, for at most GroupTable::most_groups groups; the last row has
// the number of all tiles.
abi::GroupTable group_table(const GemmArguments& arguments, const abi::GroupParams& params,
                            unsigned tile, unsigned tiles_across);
abi::IndexParams gather_params(const GemmArguments& arguments);
abi::IndexParams scatter_params(const GemmArguments& arguments);
// The extent that differs as a kernel sees it.
abi::RaggedExtent ragged_extent_of(const Groups& groups, bool is_turned) noexcept;
// The regions of a launch, from those of one matrix; they differ for groups. `region`: rows and
// columns of a region of the computed matrix.
abi::RegionGrid regions_of_launch(abi::RegionGrid grid, const GroupTileExtents& region,
                                  const GemmProblem& problem, bool is_turned);
// The same if a region is a block's tile, for which one warp arrives; a matrix has `rows` of them
// in a column.
abi::RegionGrid regions_of_tiles(unsigned rows, unsigned columns, const GroupTileExtents& tile,
                                 const GemmProblem& problem, bool is_turned);
// An upper bound on the tiles of a launch.
unsigned most_tiles(const GroupTileExtents& tile, const GemmProblem& problem);

}  // namespace gemmery::templates
