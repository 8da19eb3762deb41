// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/sm90/groups.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "device/abi/sm90_params.hpp"
#include "kernel/forms.hpp"
#include "operation/companions.hpp"
#include "providers/templates/constraints.hpp"
#include "providers/templates/groups.hpp"
#include "providers/templates/known_groups.hpp"
#include "providers/templates/problem_list.hpp"
#include "providers/templates/repacking.hpp"
#include "providers/templates/sm90/constraints.hpp"
#include "providers/templates/sm90/prediction.hpp"
#include "providers/templates/sm90/program.hpp"
#include "providers/templates/sm90/scales.hpp"

namespace gemmery::templates {
namespace {

GemmProblem seen_by(const GemmProblem& problem) {
  return as_seen_by_groups(problem, GroupStores::clipped);
}

// True if groups end along the columns of out as the kernel sees it.
bool have_columns(const Groups& groups, bool is_turned) {
  return groups.ragged == (is_turned ? Ragged::m : Ragged::n);
}

Sm90Form form_of(const Groups& groups) {
  if (is_list(groups)) return Sm90Form::listed;
  if (clears_outside(groups) && groups.gather.are_used())
    return Sm90Form::gathered_groups_with_zeros;
  if (clears_outside(groups))
    return groups.are_on_host ? Sm90Form::group_table_with_zeros : Sm90Form::groups_with_zeros;
  if (groups.gather.are_used())
    return groups.scatter.are_used() ? Sm90Form::gathered_scattered_groups
                                     : Sm90Form::gathered_groups;
  if (groups.scatter.are_used()) return Sm90Form::scattered_groups;
  return groups.are_on_host ? Sm90Form::group_table : Sm90Form::groups;
}

// Why a scatter is not supported: the epilogue applies to rows of out, of which threads look up
// elements of operands, but add up no values.
std::string find_scatter_failure(const GemmProblem& problem) {
  if (!problem.groups->scatter.are_used() || !has_reductions(problem.epilogue)) return {};
  return "groups: expected an epilogue without reductions beside a scatter by indices, got one "
         "with";
}

// Why a gather is not supported: threads copy rows whose elements are adjacent along k.
std::string find_gather_misfit(const OperandRules& rules, const Groups& groups) {
  if (!groups.gather.are_used()) return {};
  const bool is_of_a = groups.ragged == Ragged::m;
  if (is_of_a ? rules.a.layout == LayoutRule::row : rules.b.layout == LayoutRule::column) return {};
  return is_of_a ? "a: expected row major for a gather of rows, got column major"
                 : "b: expected column major for a gather of columns, got row major";
}

// Why indices are not supported: the kernel finds rows of the computed matrix and of its A.
std::string find_index_misfit(const OperandRules& rules, const GemmProblem& problem) {
  const Groups& groups = *problem.groups;
  if (!groups.have_indices()) return {};
  if (!have_columns(groups, is_turned(rules))) return find_gather_misfit(rules, groups);
  return groups.ragged == Ragged::m
             ? "out: expected row major for rows by index, got column major"
             : "out: expected column major for columns by index, got row major";
}

bool has_copies(const OperandRules& rules) { return is_repacked(rules.a) || is_repacked(rules.b); }

// Vectors along n and tensors are copied in units of 16 bytes, so a program's columns begin at
// whole units: 16 elements of any type.
constexpr std::int64_t unit_elements = 16;

// True if inputs of the program are copied along the columns of out as the kernel sees it. Where
// pairs of rows are stored, full tensors are read element by element.
bool copies_columns(EpilogueId epilogue, const OperandRules& rules) {
  const bool reads_elements = has_adjacent_rows(rules, Sm90Tile{});
  const ProgramTensors tensors = program_tensors(epilogue, is_turned(rules));
  return std::ranges::any_of(tensors.inputs, [&](const abi::EpilogueTensor& input) {
    return input.varies_n && (abi::is_vector(input) || !reads_elements);
  });
}

std::string find_program_misfit(const OperandRules& rules, const GemmProblem& problem) {
  const Groups& groups = *problem.groups;
  if (problem.epilogue == default_epilogue || !have_columns(groups, is_turned(rules))) return {};
  if (groups.sizes == GroupSizes::masked || groups.alignment % unit_elements == 0) return {};
  if (!copies_columns(problem.epilogue, rules)) return {};
  return fmt::format(
      "groups: expected an alignment that is a multiple of {} where operands of an epilogue "
      "vary along columns that groups divide, got {}",
      unit_elements, groups.alignment);
}

// Matrices of a list are by pointers in a way of their own.
std::string find_pointer_misfit(const GemmProblem& problem) {
  if (is_list(*problem.groups) || !kernel::has_pointers(problem)) return {};
  return "groups: expected matrices at strides, got addresses of matrices";
}

// Why a table does not fit the parameters. They also have those of an epilogue, and the maps of the
// inputs that TMA loads, at most one for each input that is not a vector.
std::string find_table_misfit(const GemmProblem& problem) {
  if (is_list(*problem.groups)) return find_list_failure(problem);
  if (!problem.groups->are_on_host) return {};
  std::ptrdiff_t maps = 0;
  if (problem.epilogue != default_epilogue) {
    const ProgramTensors tensors = program_tensors(problem.epilogue, false);
    maps = std::ranges::count_if(tensors.inputs,
                                 [](const auto& input) { return !abi::is_vector(input); });
    maps = std::min<std::ptrdiff_t>(maps, abi::most_tma_inputs);
  }
  return find_table_failure(problem, sizeof(abi::Sm90GroupTableParams) +
                                         sizeof(abi::TensorMap) * static_cast<std::size_t>(maps));
}

// If memory is the bottleneck, tiles of any size have the same predicted time. This factor then
// prefers the tile that wastes the least for groups of few rows. It is not measured.
double padding_factor(const GemmProblem& average, const GroupTileExtents& tile) {
  const auto padded = [](std::int64_t extent, int along) {
    const auto whole = static_cast<double>(std::max<std::int64_t>(extent, 1));
    return std::ceil(whole / along) * along / whole;
  };
  const double waste = padded(average.m, tile.m) * padded(average.n, tile.n) - 1;
  return 1 + 0.02 * std::min(waste, 15.0);
}

int tile_k_of(const OperandRules& rules) {
  return abi::sm90_swizzle_bytes /
         static_cast<int>(std::max(byte_width(rules.a.dtype), byte_width(rules.b.dtype)));
}

// The candidate with the stages that fit into shared memory beside the gathered rows' numbers.
Sm90Candidate beside_gathered_rows(Sm90Candidate candidate, const Groups& groups) {
  if (!groups.gather.are_used()) return candidate;
  candidate.stage_room -= abi::gathered_row_bytes(candidate.tile.m);
  const int stages = abi::stages_in(candidate.stage_room, candidate.stage_bytes);
  candidate.tile.stages = static_cast<std::uint8_t>(stages);
  return candidate;
}

// The additional time of a grouped kernel, without its products. Labels are read in place, like the
// sizes of few groups.
double group_us(const GemmProblem& average, const GroupTileExtents& tile, bool has_labels,
                const DeviceInfo& device) {
  const auto along = [](std::int64_t extent, int size) {
    return std::ceil(static_cast<double>(extent) / size);
  };
  const double tiles =
      along(average.m, tile.m) * along(average.n, tile.n) * static_cast<double>(average.l);
  const double of_block = std::ceil(tiles / std::max(device.multiprocessors, 1));
  return finding_us(has_labels ? 1 : average.l, of_block, true, device);
}

}  // namespace

std::string find_sm90_group_failure(const Query& query) {
  const GemmProblem& problem = query.problem;
  std::string failure = find_sm90_type_failure(query);
  if (failure.empty()) failure = find_group_failure(problem);
  if (failure.empty()) failure = find_pointer_misfit(problem);
  if (failure.empty()) failure = find_table_misfit(problem);
  if (failure.empty()) failure = find_outside_failure(problem);
  if (failure.empty()) failure = find_scatter_failure(problem);
  if (!failure.empty()) return failure;
  const FittingLayouts layouts(seen_by(problem));
  const bool has_layout =
      std::ranges::any_of(layouts, [](const OperandRules& rules) { return !has_copies(rules); });
  if (!has_layout)
    return "layouts: expected A and B in rows or columns of adjacent elements that all begin at "
           "multiples of 16 bytes, in every group, got others";
  for (const OperandRules& rules : layouts) {
    failure = find_program_misfit(rules, problem);
    if (failure.empty()) failure = find_index_misfit(rules, problem);
    if (failure.empty()) return {};
  }
  return failure;
}

namespace {

// The constraints of a tile for a problem, in the order in which they are checked.
enum class GroupMisfit : std::uint8_t { count, labels, registers, shared_memory, indices, none };

// A tile for groups, fitted to a problem.
struct FittedTile {
  GroupMisfit misfit;
  Sm90Tile tile;
};

// Fits tiles to a problem, under rules that fit it.
class GroupFit {
 public:
  GroupFit(const GemmProblem& problem, const GemmProblem& seen, const OperandRules& rules)
      : problem_(problem),
        rules_(rules),
        program_(seen, rules),
        has_program_(problem.epilogue != default_epilogue) {}

  FittedTile fit(const Sm90Candidate& candidate) const {
    const GroupTileExtents extents = extents_in_out(candidate.tile, is_turned(rules_));
    Sm90Tile tile = candidate.tile;
    if (!fits_grouped_grid(extents, problem_)) return {GroupMisfit::count, tile};
    if (!fits_labels(extents, problem_)) return {GroupMisfit::labels, tile};
    if (has_program_ && !candidate.has_room_for_programs) return {GroupMisfit::registers, tile};
    const Sm90Candidate own = beside_gathered_rows(candidate, *problem_.groups);
    const int stages = has_program_ ? program_.stages(own) : own.tile.stages;
    if (stages == 0) return {GroupMisfit::shared_memory, tile};
    tile.stages = static_cast<std::uint8_t>(stages);
    tile.form = form_of(*problem_.groups);
    const bool is_special = problem_.groups->have_indices() || is_list(*problem_.groups) ||
                            operation::has_companions(problem_);
    if (is_special && !abi::is_legal(sm90_design(rules_, tile)))
      return {GroupMisfit::indices, tile};
    return {GroupMisfit::none, tile};
  }

 private:
  const GemmProblem& problem_;
  const OperandRules& rules_;
  ProgramFit program_;
  bool has_program_;
};

// The rules of the kernels for a problem that has a layout.
OperandRules rules_for(const OperandRules& rules, const GemmProblem& problem) {
  return is_list(*problem.groups) ? listed_rules(rules) : rules;
}

// The tensor that TMA would have to load and cannot, or that there is no room for all.
std::string input_misfit_text(const OperandRules& rules, const GemmProblem& problem) {
  const Status blocks =
      check_sm90_blocks(problem.epilogue, is_turned(rules), widest_staging(rules));
  if (!blocks) return blocks.error();
  const ProgramTensors tensors = program_tensors(problem.epilogue, is_turned(rules));
  for (const Sm90Candidate& candidate : sm90_group_candidates(rules)) {
    const abi::Sm90Design design = with_program(sm90_design(rules, candidate.tile), tensors);
    std::string misfit =
        find_misfit(list_tma_inputs(problem, rules, design, tensors), problem.epilogue);
    if (!misfit.empty()) return misfit;
  }
  return "epilogue: expected tensors that fit into shared memory beside two stages, got larger "
         "ones";
}

std::string misfit_text(GroupMisfit misfit, const OperandRules& rules, const GemmProblem& problem) {
  switch (misfit) {
    case GroupMisfit::labels: {
      std::vector<GroupTileExtents> tiles;
      for (const Sm90Candidate& candidate : sm90_group_candidates(rules))
        tiles.push_back(extents_in_out(candidate.tile, is_turned(rules)));
      return find_label_failure(tiles, problem);
    }
    case GroupMisfit::registers:
      return "epilogue: expected accumulators that leave registers for a program, got too many";
    case GroupMisfit::shared_memory:
      return input_misfit_text(rules, problem);
    case GroupMisfit::indices:
      return "groups: expected A and B that are multiplied as they lie beside rows by index, got "
             "ones that are transposed in shared memory";
    default:
      return too_many("tiles of groups", problem);
  }
}

}  // namespace

// The reason of the tile that comes closest.
std::string find_sm90_group_misfit(const GemmProblem& problem) {
  const GemmProblem seen = seen_by(problem);
  GroupMisfit nearest = GroupMisfit::count;
  std::string text = misfit_text(nearest, {}, problem);
  for (const OperandRules& layout : FittingLayouts(seen)) {
    if (has_copies(layout)) continue;
    const OperandRules rules = rules_for(layout, problem);
    const GroupFit fit(problem, seen, rules);
    for (const Sm90Candidate& candidate : sm90_group_candidates(rules)) {
      const GroupMisfit misfit = fit.fit(candidate).misfit;
      if (misfit <= nearest || misfit == GroupMisfit::none) continue;
      nearest = misfit;
      text = misfit_text(misfit, rules, problem);
    }
  }
  return text;
}

void match_sm90_groups(const Family& family, const Query& query,
                       std::vector<RankedKernel>& kernels) {
  if (!find_sm90_group_failure(query).empty()) return;
  const GemmProblem& problem = query.problem;
  const GemmProblem seen = seen_by(problem);
  const KnownGroups groups(query);
  const GemmProblem& average = groups.average();
  const bool has_scales = operation::has_companions(problem);
  for (const OperandRules& layout : FittingLayouts(seen)) {
    if (has_copies(layout) || !find_program_misfit(layout, problem).empty() ||
        !find_index_misfit(layout, problem).empty())
      continue;
    const OperandRules rules = rules_for(layout, problem);
    const Sm90Prediction prediction(average, rules, query.device);
    const GroupFit fit(problem, seen, rules);
    for (const Sm90Candidate& listed : sm90_group_candidates(rules)) {
      const auto scaled =
          has_scales ? with_scales(listed, rules, problem) : std::optional<Sm90Candidate>{};
      if (has_scales && !scaled) continue;
      const Sm90Candidate& candidate = scaled ? *scaled : listed;
      const auto [misfit, tile] = fit.fit(candidate);
      if (misfit != GroupMisfit::none) continue;
      const GroupTileExtents extents = extents_in_out(candidate.tile, is_turned(rules));
      const int stages = tile.stages;
      const auto load =
          groups.load(extents, tile_k_of(rules), std::max(query.device.multiprocessors, 1));
      const double time = (load ? prediction.microseconds(candidate, stages, *load)
                                : prediction.microseconds(candidate, stages)) +
                          group_us(average, extents, has_labels(*problem.groups), query.device);
      kernels.emplace_back(Kernel(family, rules, DesignBytes::of(tile), problem.epilogue),
                           time * padding_factor(average, extents));
    }
  }
}

Status check_sm90_groups(const Sm90Tile& tile, const OperandRules& rules,
                         const GemmProblem& problem) {
  Status status = check_groups(tile.has_groups(), rules, problem, GroupStores::clipped);
  if (!status || !problem.groups) return status;
  if (tile.has_list() != is_list(*problem.groups))
    return Status::fail(fmt::format(
        "groups: expected {}", tile.has_list() ? "a list of problems, got groups of one problem"
                                               : "groups of one problem, got a list of problems"));
  const bool are_on_host = problem.groups->are_on_host;
  if ((tile.has_group_table() || tile.has_list()) != are_on_host)
    return Status::fail(fmt::format("groups: expected sizes in {} memory, got them in {} memory",
                                    are_on_host ? "device" : "host",
                                    are_on_host ? "host" : "device"));
  const bool has_zeros = clears_outside(*problem.groups);
  if (tile.clears_outside() != has_zeros)
    return Status::fail(fmt::format("groups: expected outside={}, got outside={}",
                                    has_zeros ? "untouched" : "zero",
                                    has_zeros ? "zero" : "untouched"));
  if (tile.scatters_rows() != problem.groups->scatter.are_used() ||
      tile.gathers_rows() != problem.groups->gather.are_used())
    return Status::fail(
        tile.scatters_rows() || tile.gathers_rows()
            ? "groups: expected rows by index, got elements in their groups' order"
            : "groups: expected elements in their groups' order, got rows by index");
  std::string misfit = find_code_group_failure(problem);
  if (misfit.empty()) misfit = find_pointer_misfit(problem);
  if (misfit.empty()) misfit = find_table_misfit(problem);
  if (misfit.empty()) misfit = find_outside_failure(problem);
  if (misfit.empty()) misfit = find_scatter_failure(problem);
  if (misfit.empty()) misfit = find_index_misfit(rules, problem);
  if (misfit.empty()) misfit = find_program_misfit(rules, problem);
  if (misfit.empty() && !fits_grouped_grid(extents_in_out(tile, is_turned(rules)), problem))
    misfit = too_many(fmt::format("tiles of {}x{}", tile.m, tile.n), problem);
  if (misfit.empty())
    misfit = find_label_failure(std::array{extents_in_out(tile, is_turned(rules))}, problem);
  return misfit.empty() ? Status::success() : Status::fail(std::move(misfit));
}

}  // namespace gemmery::templates
