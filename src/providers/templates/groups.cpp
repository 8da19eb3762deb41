// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/groups.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "device/abi/group_regions.hpp"
#include "device/abi/simt_design.hpp"
#include "kernel/rules.hpp"
#include "operation/groups.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "runtime/launch_plan.hpp"

namespace gemmery::templates {
namespace {

constexpr std::uint64_t most_grid_blocks = 0x7fffffff;

abi::GroupForm form_of(GroupSizes sizes) {
  switch (sizes) {
    case GroupSizes::prefix:
      return abi::GroupForm::prefix;
    case GroupSizes::counts:
      return abi::GroupForm::counts;
    case GroupSizes::masked:
      return abi::GroupForm::masked;
    case GroupSizes::labels:
      return abi::GroupForm::labels;
    default:
      return abi::GroupForm::ends;
  }
}

abi::GroupParams params_of(const GemmProblem& problem) {
  const Groups& groups = *problem.groups;
  return {.sizes = nullptr,
          .form = form_of(groups.sizes),
          .ragged = static_cast<abi::RaggedExtent>(groups.ragged),
          .is_wide = groups.index_bits == 64 ? 1U : 0U,
          .count = static_cast<unsigned>(problem.l),
          .extent = static_cast<unsigned>(operation::ragged_extent(problem)),
          .alignment = static_cast<unsigned>(groups.alignment)};
}

std::uint64_t count_tiles(const GroupTileExtents& tile, const GemmProblem& problem) {
  const std::uint64_t rows = abi::tiles_along(static_cast<unsigned>(problem.m), tile.m);
  const std::uint64_t columns = abi::tiles_along(static_cast<unsigned>(problem.n), tile.n);
  const Ragged ragged = problem.groups->ragged;
  const std::uint64_t across = ragged == Ragged::n   ? rows
                               : ragged == Ragged::k ? rows * columns
                                                     : columns;
  if (across > most_grid_blocks) return across;
  if (problem.groups->sizes == GroupSizes::list)
    return rows * columns > most_grid_blocks
               ? rows * columns
               : rows * columns * static_cast<std::uint64_t>(problem.l);
  return abi::most_group_tiles(params_of(problem), ragged == Ragged::n ? tile.n : tile.m,
                               static_cast<unsigned>(across));
}

// The largest power of two up to 16 that divides `bytes`.
std::uint8_t power_of_two_in(std::int64_t bytes) {
  std::int64_t power = 1;
  while (power < 16 && bytes % (2 * power) == 0) power *= 2;
  return static_cast<std::uint8_t>(power);
}

void align_to_groups(MatrixType& matrix, std::int64_t stride_of_ragged, const Groups& groups) {
  if (stride_of_ragged != 1 || !groups.share_tensors()) return;
  const auto width = static_cast<std::int64_t>(byte_width(matrix.dtype));
  matrix.alignment = std::min(matrix.alignment, power_of_two_in(groups.alignment * width));
}

// A group may end anywhere, so no store covers several elements along the extent that differs; in a
// list all extents differ.
void store_single_elements(MatrixType& matrix, const Groups& groups) {
  const Ragged ragged = groups.ragged;
  const std::int64_t stride = ragged == Ragged::m ? matrix.row_stride : matrix.column_stride;
  if (groups.sizes == GroupSizes::list || (ragged != Ragged::k && stride == 1))
    matrix.alignment =
        std::min(matrix.alignment, static_cast<std::uint8_t>(byte_width(matrix.dtype)));
}

// The tile's extent along the one that differs between groups.
int ragged_tile(const GroupTileExtents& tile, const Groups& groups) {
  return groups.ragged == Ragged::n ? tile.n : tile.m;
}

}  // namespace

bool has_labels(const Groups& groups) noexcept { return groups.sizes == GroupSizes::labels; }

bool divides_tensors(const Groups& groups) noexcept {
  return groups.sizes != GroupSizes::list && !(has_labels(groups) && groups.are_on_host);
}

bool clears_outside(const Groups& groups) noexcept {
  return groups.outside == OutsideGroups::zero && groups.ragged != Ragged::k;
}

std::string find_outside_failure(const GemmProblem& problem) {
  if (!clears_outside(*problem.groups)) return {};
  if (problem.l == 0) return "groups: expected at least one with zeros outside of groups, got none";
  const bool has_further_results =
      problem.epilogue != default_epilogue &&
      std::ranges::any_of(rules_of(problem.epilogue).operands, &EpilogueOperandRule::is_output);
  if (!has_further_results) return {};
  return "groups: expected an epilogue whose only result is out with zeros outside of groups, got "
         "further results";
}

std::string find_group_failure(const GemmProblem& problem) {
  if (!has_reductions(problem.epilogue)) return {};
  const Groups& groups = *problem.groups;
  if (!has_labels(groups)) return {};
  const ProgramTensors tensors = program_tensors(problem.epilogue, false);
  const auto is_of_group = [&](const abi::EpilogueTensor& output) {
    return output.reduction != abi::Reduction::none &&
           abi::reduces_ragged(output, ragged_extent_of(groups, false));
  };
  if (!std::ranges::any_of(tensors.outputs, is_of_group)) return {};
  return "groups: expected reductions of each row or column with labels, got one per group";
}

std::string find_table_failure(const GemmProblem& problem, std::size_t bytes) {
  constexpr std::int64_t most_groups = abi::GroupTable::most_groups;
  if (problem.l > most_groups)
    return fmt::format(
        "groups: expected at most {} with sizes in host memory, or sizes in memory of the device, "
        "got {}",
        most_groups, problem.l);
  constexpr std::size_t bytes_of_operand =
      sizeof(abi::EpiloguePlace) + sizeof(abi::ReductionSchedule);
  constexpr std::size_t capacity = runtime::LaunchPlan::parameter_capacity - 128;
  const std::size_t most_operands = bytes < capacity ? (capacity - bytes) / bytes_of_operand : 0;
  if (problem.epilogue_operands.size() <= most_operands) return {};
  return fmt::format(
      "groups: expected at most {} operands of an epilogue with sizes in host memory, got {}",
      most_operands, problem.epilogue_operands.size());
}

GemmProblem as_seen_by_groups(GemmProblem problem, GroupStores stores) {
  const Groups& groups = *problem.groups;
  switch (groups.ragged) {
    case Ragged::m:
      align_to_groups(problem.a, problem.a.row_stride, groups);
      break;
    case Ragged::n:
      align_to_groups(problem.b, problem.b.column_stride, groups);
      break;
    case Ragged::k:
      align_to_groups(problem.a, problem.a.column_stride, groups);
      align_to_groups(problem.b, problem.b.row_stride, groups);
      break;
  }
  const auto align_output = [&](MatrixType& matrix) {
    if (stores == GroupStores::of_elements) return store_single_elements(matrix, groups);
    if (groups.ragged == Ragged::m) align_to_groups(matrix, matrix.row_stride, groups);
    if (groups.ragged == Ragged::n) align_to_groups(matrix, matrix.column_stride, groups);
  };
  align_output(problem.out);
  if (problem.c) align_output(*problem.c);
  return problem;
}

namespace {

// Turns a tensor that groups share into a batch of matrices of `extent` elements each, whose bytes
// count once per group. A tensor that does not vary along the extent is read by all groups.
void lay_apart(MatrixType& matrix, Ragged extent_of, std::int64_t extent) {
  const std::int64_t stride = extent_of == Ragged::m ? matrix.row_stride : matrix.column_stride;
  if (matrix.batch_stride == 0) matrix.batch_stride = stride * extent;
}

// The tensors that groups share, as batches of the average group's matrices.
void lay_groups_apart(GemmProblem& average, Ragged ragged, std::int64_t extent) {
  if (ragged != Ragged::n)
    lay_apart(average.a, ragged == Ragged::m ? Ragged::m : Ragged::n, extent);
  if (ragged != Ragged::m)
    lay_apart(average.b, ragged == Ragged::n ? Ragged::n : Ragged::m, extent);
  if (ragged == Ragged::k) return;
  lay_apart(average.out, ragged, extent);
  if (average.c) lay_apart(*average.c, ragged, extent);
  for (MatrixType& operand : average.epilogue_operands) lay_apart(operand, ragged, extent);
}

}  // namespace

GemmProblem average_groups(const GemmProblem& problem) {
  const Groups& groups = *problem.groups;
  const std::int64_t whole = operation::ragged_extent(problem);
  const std::int64_t fair =
      groups.share_tensors() ? whole / std::max<std::int64_t>(problem.l, 1) : whole;
  const std::int64_t size = groups.expected > 0 ? std::min(groups.expected, whole) : fair;
  GemmProblem average = problem;
  std::int64_t& extent = groups.ragged == Ragged::m   ? average.m
                         : groups.ragged == Ragged::n ? average.n
                                                      : average.k;
  extent = std::max<std::int64_t>(size, 1);
  if (groups.share_tensors()) lay_groups_apart(average, groups.ragged, extent);
  average.groups.reset();
  return average;
}

double finding_us(std::int64_t groups, double tiles_of_block, bool goes_on,
                  const DeviceInfo& device) {
  constexpr double clocks_a_scan = 800;
  const double scans = std::max(std::ceil(static_cast<double>(groups) / 32), 1.0);
  const double in_all = goes_on ? scans - 1 + tiles_of_block : scans * tiles_of_block;
  return clocks_a_scan * in_all / (device.clock_ghz * 1e3);
}

Status check_groups(bool finds_groups, const OperandRules& rules, const GemmProblem& problem,
                    GroupStores stores) {
  if (!finds_groups)
    return problem.groups ? Status::fail("groups: expected one GEMM, got a grouped problem")
                          : Status::success();
  if (!problem.groups) return Status::fail("groups: expected a grouped problem, got one GEMM");
  if (const std::string failure = find_group_failure(problem); !failure.empty())
    return Status::fail(failure);
  return kernel::check_rules(rules, as_seen_by_groups(problem, stores));
}

bool fits_grouped_grid(const GroupTileExtents& tile, const GemmProblem& problem) {
  return count_tiles(tile, problem) <= most_grid_blocks;
}

bool fits_labels(const GroupTileExtents& tile, const GemmProblem& problem) {
  if (!problem.groups || problem.groups->sizes != GroupSizes::labels) return true;
  return problem.groups->alignment % ragged_tile(tile, *problem.groups) == 0;
}

std::string find_label_failure(std::span<const GroupTileExtents> tiles,
                               const GemmProblem& problem) {
  const auto fits = [&](const GroupTileExtents& tile) { return fits_labels(tile, problem); };
  if (std::ranges::any_of(tiles, fits)) return {};
  int least = ragged_tile(tiles.front(), *problem.groups);
  for (const GroupTileExtents& tile : tiles)
    least = std::min(least, ragged_tile(tile, *problem.groups));
  return fmt::format(
      "labels: expected ones that change at multiples of {} (alignment of groups), got {}", least,
      problem.groups->alignment);
}

abi::GroupParams group_params(const GemmArguments& arguments, bool is_turned) {
  const Groups& groups = *arguments.problem().groups;
  abi::GroupParams params = params_of(arguments.problem());
  if (!groups.are_on_host) params.sizes = arguments.group_memory()->sizes.data;
  params.ragged = ragged_extent_of(groups, is_turned);
  return params;
}

abi::RaggedExtent ragged_extent_of(const Groups& groups, bool is_turned) noexcept {
  if (groups.ragged == Ragged::k) return abi::RaggedExtent::k;
  return (groups.ragged == Ragged::m) == is_turned ? abi::RaggedExtent::n : abi::RaggedExtent::m;
}

abi::RegionGrid regions_of_launch(abi::RegionGrid grid, const GroupTileExtents& region,
                                  const GemmProblem& problem, bool is_turned) {
  if (!problem.groups) return grid;
  const Groups& groups = *problem.groups;
  const abi::RaggedExtent ragged = ragged_extent_of(groups, is_turned);
  if (ragged == abi::RaggedExtent::k) return grid;
  const auto count = static_cast<unsigned>(problem.l);
  const bool is_of_rows = ragged == abi::RaggedExtent::m;
  unsigned& numbers = is_of_rows ? grid.rows : grid.columns;
  const unsigned of_matrix = numbers;
  grid.group_regions = 1;
  if (has_labels(groups)) {
    grid.group_regions = 0;
  } else if (groups.sizes == GroupSizes::masked) {
    grid.group_regions = of_matrix;
    numbers = count * of_matrix;
  } else {
    const auto extent = static_cast<unsigned>(operation::ragged_extent(problem));
    numbers = extent / static_cast<unsigned>(is_of_rows ? region.m : region.n) + count;
  }
  return grid;
}

abi::RegionGrid regions_of_tiles(unsigned rows, unsigned columns, const GroupTileExtents& tile,
                                 const GemmProblem& problem, bool is_turned) {
  const abi::RegionGrid grid{.rows = rows,
                             .columns = columns,
                             .batches = static_cast<unsigned>(problem.l),
                             .column_parts = 1,
                             .whole_parts = 1,
                             .arrivals = 1,
                             .groups = 0};
  return regions_of_launch(grid, tile, problem, is_turned);
}

abi::GroupTable group_table(const GemmArguments& arguments, const abi::GroupParams& params,
                            unsigned tile, unsigned tiles_across) {
  abi::GroupTable table{};
  unsigned group = 0;
  unsigned tiles = 0;
  for (const operation::GroupSlice& slice : operation::read_groups(arguments)) {
    table.rows[group++] = {.first_tile = tiles,
                           .end = static_cast<unsigned>(slice.begin + slice.size)};
    const auto size = static_cast<unsigned>(slice.size);
    tiles += params.ragged == abi::RaggedExtent::k
                 ? tiles_across
                 : abi::tiles_along(size, static_cast<int>(tile)) * tiles_across;
  }
  table.rows[group] = {.first_tile = tiles, .end = 0};
  return table;
}

namespace {

abi::IndexParams index_params(const IndexedElements& indexed, const GroupIndices& indices) {
  return {.data = indices.data,
          .is_wide = indexed.bits == 64 ? 1U : 0U,
          .divide = static_cast<unsigned>(indexed.divide),
          .extent = static_cast<unsigned>(indexed.extent)};
}

}  // namespace

abi::IndexParams gather_params(const GemmArguments& arguments) {
  return index_params(arguments.problem().groups->gather, arguments.group_memory()->gather);
}

abi::IndexParams scatter_params(const GemmArguments& arguments) {
  return index_params(arguments.problem().groups->scatter, arguments.group_memory()->scatter);
}

unsigned most_tiles(const GroupTileExtents& tile, const GemmProblem& problem) {
  return static_cast<unsigned>(count_tiles(tile, problem));
}

}  // namespace gemmery::templates
