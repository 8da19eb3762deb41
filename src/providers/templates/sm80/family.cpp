// SPDX-License-Identifier: Apache-2.0
// The sm80 family: which kernels serve a query, why others do not, and what they are called.
#include "providers/templates/sm80/family.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "device/abi/sm80_grouped_params.hpp"
#include "kernel/rules.hpp"
#include "providers/templates/constraints.hpp"
#include "providers/templates/conv_windows.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/groups.hpp"
#include "providers/templates/name_words.hpp"
#include "providers/templates/problem_list.hpp"
#include "providers/templates/sm80/convolution.hpp"
#include "providers/templates/sm80/design.hpp"
#include "providers/templates/sm80/listed.hpp"
#include "providers/templates/sm80/prediction.hpp"
#include "providers/templates/sm80/scales.hpp"
#include "runtime/portable_targets.hpp"

namespace gemmery::templates {
namespace {

// The portable targets from this architecture on.
std::span<const Target> targets_from(int architecture) {
  const std::span<const Target> all = runtime::portable_targets;
  const auto first =
      std::ranges::find_if(all, [=](Target target) { return target.architecture >= architecture; });
  return all.subspan(static_cast<std::size_t>(first - all.begin()));
}

// The targets on which some kernel multiplies the types.
std::span<const Target> targets_of(DType a, DType b) {
  constexpr int first_with_float8 = 89;
  const bool is_float8 = bit_width(a) == 8 && !is_integer(a) && !is_mixed_sm80(a, b);
  return targets_from(is_float8 ? first_with_float8 : 0);
}

std::span<const Target> targets_of(const Kernel& kernel) {
  constexpr int first_with_wide_doubles = 90;
  // ptxas 13.0 spills in most of these (29 of 40 designs of int8), and simt serves.
  constexpr int first_that_spills_bytes = 120;
  if (abi::needs_sm90_mma(sm80_design(kernel))) return targets_from(first_with_wide_doubles);
  const std::span<const Target> all =
      targets_of(kernel.operands().a.dtype, kernel.operands().b.dtype);
  if (!transposes_few_bytes(kernel.operands(), sm80_tile(kernel).conv)) return all;
  return all.first(all.size() - targets_from(first_that_spills_bytes).size());
}

// --- constraints --------------------------------------------------------------------------------

std::string find_sm80_group_failure(const GemmProblem& problem) {
  std::string failure = find_group_failure(problem);
  if (failure.empty()) failure = find_outside_failure(problem);
  if (!failure.empty() || !problem.groups->are_on_host) return failure;
  if (is_list(*problem.groups)) return find_list_failure(problem);
  return find_table_failure(problem, problem.groups->have_indices()
                                         ? sizeof(abi::Sm80IndexedTableParams)
                                         : sizeof(abi::Sm80GroupTableParams));
}

// Why groups of a problem with codes are not supported; empty if they are, or there are none.
std::string find_mixed_group_failure(const GemmProblem& problem) {
  if (!problem.groups || !is_mixed_sm80(problem.a.dtype, problem.b.dtype)) return {};
  const Groups& groups = *problem.groups;
  if (groups.ragged == Ragged::k)
    return "groups: expected ones along M or N beside codes, got groups along K";
  if (groups.are_on_host || groups.have_indices() || clears_outside(groups))
    return "groups: expected sizes in device memory, elements in their groups' order and untouched "
           "elements outside, beside codes, got others";
  return {};
}

// The first constraint on types that the whole family fails, in words; empty if it supports them.
std::string find_type_failure(const Query& query) {
  const GemmProblem& problem = query.problem;
  std::string failure =
      find_device_failure(targets_of(problem.a.dtype, problem.b.dtype), query.device);
  if (!failure.empty()) return failure;
  if (!sm80_math(problem.a.dtype, problem.b.dtype, problem.accumulator, problem.math)) {
    return fmt::format(
        "types: expected 16-bit floats of one type, or with codes of 4 or 8 bits, float64, 8-bit "
        "integers, 8-bit floats with math=fp8_fast, or float32 with math=tf32, tf32x3, bf16x3, "
        "f16x3, bf16 or f16, got {} times {} in {}, math={}",
        name(problem.a.dtype), name(problem.b.dtype), name(problem.accumulator),
        name(problem.math));
  }
  if (is_mixed_sm80(problem.a.dtype, problem.b.dtype) && problem.convolution)
    return fmt::format("types: expected equal types in a convolution, got {} times {}",
                       name(problem.a.dtype), name(problem.b.dtype));
  failure = find_mixed_group_failure(problem);
  if (!failure.empty()) return failure;
  failure = find_sm80_scale_failure(problem);
  if (!failure.empty()) return failure;
  failure = find_output_failure(sm80_outputs(problem.accumulator), problem);
  if (failure.empty() && problem.convolution) return find_sm80_conv_failure(problem);
  return failure.empty() && problem.groups ? find_sm80_group_failure(problem) : failure;
}

bool fits_operand(const OperandRule& rule, const MatrixType& matrix, std::int64_t rows,
                  std::int64_t columns) {
  return kernel::keeps_layout(rule.layout, matrix, rows, columns) &&
         kernel::run_alignment(rule.layout, matrix, rows, columns) % rule.alignment == 0;
}

// The rules of a list that a matrix satisfies: for each layout only the widest, and rules for any
// layout only if no other one fits.
std::vector<OperandRule> fitting(const std::vector<OperandRule>& rules, const MatrixType& matrix,
                                 std::int64_t rows, std::int64_t columns) {
  std::vector<OperandRule> fit;
  for (const OperandRule& rule : rules) {
    const bool has_wider = std::ranges::any_of(fit, [&](const OperandRule& other) {
      return other.layout == rule.layout || rule.layout == LayoutRule::any;
    });
    if (!has_wider && fits_operand(rule, matrix, rows, columns)) fit.push_back(rule);
  }
  return fit;
}

Sm80GroupForm form_of(const GemmProblem& problem) {
  return problem.groups ? group_form(*problem.groups) : Sm80GroupForm{};
}

std::vector<Sm80Tile> tiles_of(const GemmProblem& problem, const OperandRules& rules) {
  return sm80_tiles(rules, form_of(problem), conv_of(problem));
}

// The rules under which operands of a problem may be multiplied.
std::vector<OperandRules> fitting_rules(const GemmProblem& problem) {
  const abi::IndexedExtent indexed = form_of(problem).indexed;
  const auto& [m, n, k] = std::array{problem.m, problem.n, problem.k};
  const auto input_rules = [&](DType dtype, bool is_a) {
    if (is_mixed_sm80(problem.a.dtype, problem.b.dtype)) return sm80_mixed_input_rules(dtype, is_a);
    if (!problem.convolution) return sm80_input_rules(dtype);
    auto rules = sm80_conv_input_rules(dtype);
    std::erase_if(rules, [&](const OperandRule& rule) {
      return !holds_whole_channels(rule, *problem.convolution, is_a);
    });
    return rules;
  };
  const auto a = fitting(input_rules(problem.a.dtype, true), problem.a, m, k);
  const auto b = fitting(input_rules(problem.b.dtype, false), problem.b, k, n);
  const auto output_rules = [&](DType dtype) {
    auto rules = problem.groups ? sm80_grouped_output_rules(dtype) : sm80_output_rules(dtype);
    std::erase_if(rules, [&](const OperandRule& rule) {
      return rule.layout == layout_along(indexed) ||
             (problem.convolution && rule.layout == LayoutRule::column);
    });
    return rules;
  };
  const auto out = fitting(output_rules(problem.out.dtype), problem.out, m, n);
  std::vector<OperandRule> c(1);
  if (problem.c) c = fitting(output_rules(problem.c->dtype), *problem.c, m, n);
  std::vector<OperandRules> all;
  for (const OperandRule& a_rule : a)
    for (const OperandRule& b_rule : b)
      for (const OperandRule& out_rule : out)
        for (const OperandRule& c_rule : c)
          all.push_back({.a = a_rule,
                         .b = b_rule,
                         .c = c_rule,
                         .out = out_rule,
                         .accumulator = problem.accumulator,
                         .math = problem.math,
                         .has_c = problem.c.has_value(),
                         .a_companions = kernel::companion_rules(problem.a_companions),
                         .b_companions = kernel::companion_rules(problem.b_companions)});
  const Sm80Conv conv = conv_of(problem);
  std::erase_if(all, [&](const OperandRules& rules) {
    return !takes_indices(rules, indexed) || !takes_conv_layouts(rules, conv);
  });
  return all;
}

// True if units of work, and the k blocks of a stream, fit the kernel's 32-bit counters.
bool fits_count(const Sm80Tile& tile, const OperandRules& rules, const GemmProblem& problem) {
  if (problem.groups) return fits_grouped_grid(extents_in_out(tile, rules), problem);
  const Sm80Extents extents = sm80_extents(rules, tile, problem);
  constexpr double limit = 0x7fffffff;
  const double tiles = static_cast<double>(extents.tile_rows) * extents.tile_columns *
                       static_cast<double>(problem.l);
  const double blocks = abi::tiles_along(static_cast<unsigned>(problem.k), tile.k);
  const double units =
      tile.split == abi::SplitMode::stream ? tiles * std::max(blocks, 1.0) : tiles * tile.slices;
  return units <= limit;
}

std::string find_misfit(const Kernel& kernel, const Query& query) {
  const abi::Sm80Design design = sm80_design(kernel);
  std::string failure = find_device_failure(targets_of(kernel), query.device);
  if (!failure.empty()) return failure;
  if (abi::shared_bytes(design) > query.device.shared_bytes_per_block) {
    return fmt::format("shared memory: expected at most {} bytes of a block, got {}",
                       query.device.shared_bytes_per_block, abi::shared_bytes(design));
  }
  const Sm80Tile tile = sm80_tile(kernel);
  if (!fits_count(tile, kernel.operands(), query.problem))
    return too_many(fmt::format("tiles of {}x{}", tile.m, tile.n), query.problem);
  const RowSpace space{.columns = design.tile_n,
                       .run = abi::finished_columns(design),
                       .is_turned = is_turned_sm80(kernel.operands(), tile)};
  if (const Status status = check_row_blocks(query.problem.epilogue, space); !status)
    return status.error();
  const GroupTileExtents extents[] = {extents_in_out(tile, kernel.operands())};
  return query.problem.groups ? find_label_failure(extents, query.problem) : std::string();
}

// Why no tile supports the problem's labels; empty if some do.
std::string find_sm80_label_failure(const OperandRules& rules, const GemmProblem& problem) {
  std::vector<GroupTileExtents> extents;
  for (const Sm80Tile& tile : tiles_of(problem, rules))
    extents.push_back(extents_in_out(tile, rules));
  return find_label_failure(extents, problem);
}

// The constraint that every kernel fails, though the family supports the types.
std::string find_failure_of_kernels(const Sm80Family& family, const Query& query) {
  const GemmProblem& problem = query.problem;
  const auto all =
      fitting_rules(problem.groups ? as_seen_by_groups(problem, GroupStores::clipped) : problem);
  if (all.empty() && problem.groups && problem.groups->have_indices())
    return "layouts: expected adjacent elements in rows of A (columns of B) that are found by "
           "indices, and in rows or columns of the other operand, got other strides";
  if (all.empty() && is_mixed_sm80(problem.a.dtype, problem.b.dtype))
    return "layouts: expected A in rows and B in columns of adjacent elements, codes of 4 bits "
           "aligned to 4 bytes, got other strides";
  if (all.empty())
    return "layouts: expected A and B with rows or columns of adjacent elements, got other strides";
  const OperandRules& rules = all.front();
  std::string failure = find_sm80_label_failure(rules, problem);
  const Kernel last(family, rules, DesignBytes::of(tiles_of(problem, rules).back()),
                    problem.epilogue);
  return failure.empty() ? find_misfit(last, query) : failure;
}

std::string_view text_of(abi::IndexedExtent indexed) {
  constexpr std::string_view texts[] = {"elements in their groups' order", "rows by index",
                                        "columns by index"};
  return texts[static_cast<std::size_t>(indexed)];
}

// Success if the kernel's schedule supports the place of the problem's sizes, and the kernel the
// other properties of its groups.
Status check_schedule(const Sm80Tile& tile, const GemmProblem& problem) {
  if (!problem.groups) return Status::success();
  const bool has_list = tile.groups == abi::GroupSchedule::list;
  if (has_list != is_list(*problem.groups))
    return Status::fail(fmt::format("groups: expected {}, got {}",
                                    has_list ? "a list of problems" : "groups of one problem",
                                    has_list ? "groups of one problem" : "a list of problems"));
  const bool has_table = has_list || tile.groups == abi::GroupSchedule::host;
  if (has_table != problem.groups->are_on_host)
    return Status::fail(fmt::format(
        "groups: expected sizes in {} memory for schedule={}, got them in {} memory",
        has_table ? "host" : "device", schedule_text(tile.groups), has_table ? "device" : "host"));
  if (has_labels(*problem.groups) && tile.groups != abi::GroupSchedule::device)
    return Status::fail(
        fmt::format("groups: expected labels for schedule=device alone, got schedule={}",
                    schedule_text(tile.groups)));
  const Sm80GroupForm form = form_of(problem);
  if (form.indexed != tile.indexed)
    return Status::fail(
        fmt::format("groups: expected {}, got {}", text_of(tile.indexed), text_of(form.indexed)));
  if (form.clears_outside != tile.clears_outside)
    return Status::fail(fmt::format("groups: expected outside={}, got outside={}",
                                    tile.clears_outside ? "zero" : "untouched",
                                    form.clears_outside ? "zero" : "untouched"));
  std::string failure = find_sm80_group_failure(problem);
  return failure.empty() ? Status::success() : Status::fail(std::move(failure));
}

// Success if the kernel's convolution is the problem's, and no access crosses from tap to tap.
Status check_convolution(const Kernel& kernel, const GemmProblem& problem) {
  const Sm80Tile tile = sm80_tile(kernel);
  if (tile.conv != conv_of(problem))
    return Status::fail(fmt::format("operation: expected {}, got {}", operation_text(tile.conv),
                                    operation_text(conv_of(problem))));
  if (!problem.convolution) return Status::success();
  if (std::string failure = find_sm80_conv_failure(problem); !failure.empty())
    return Status::fail(std::move(failure));
  const auto check = [&](const char* name, const OperandRule& rule, bool is_a) {
    if (holds_whole_channels(rule, *problem.convolution, is_a)) return Status::success();
    return Status::fail(fmt::format("{}: expected channels of a tap in multiples of {} bytes", name,
                                    static_cast<int>(rule.alignment)));
  };
  if (Status status = check("A", kernel.operands().a, true); !status) return status;
  return check("B", kernel.operands().b, false);
}

// --- walking the space --------------------------------------------------------------------------

// Calls add(tile) with a schedule for groups, if the design has registers for it.
template <class Add>
void walk_schedule(const Sm80Tile& tile, const OperandRules& rules, abi::GroupSchedule schedule,
                   Add&& add) {
  if (const auto scheduled = scheduled_tile(tile, rules, schedule)) add(*scheduled);
}

// Calls add(tile) for the schedules of a tile that support the groups.
template <class Add>
void walk_schedules(const Sm80Tile& tile, const OperandRules& rules, const Groups& groups,
                    Add&& add) {
  if (is_list(groups)) return walk_schedule(tile, rules, abi::GroupSchedule::list, add);
  if (groups.are_on_host) return walk_schedule(tile, rules, abi::GroupSchedule::host, add);
  walk_schedule(tile, rules, abi::GroupSchedule::device, add);
  if (has_labels(groups)) return;  // their tiles are found without a scan
  walk_schedule(tile, rules, abi::GroupSchedule::persistent, add);
}

// Calls add(tile) for a tile and for those of its splits that may be faster: if its tiles do not
// fill the device and k is long enough to split.
template <class Add>
void walk_splits(const Sm80Tile& tile, const OperandRules& rules, const Query& query, Add&& add) {
  add(tile);
  if (has_phases(tile.conv)) return;
  const GemmProblem& problem = query.problem;
  const Sm80Extents extents = sm80_extents(rules, tile, problem);
  const double tiles = static_cast<double>(extents.tile_rows) * extents.tile_columns *
                       static_cast<double>(problem.l);
  const unsigned k_blocks = abi::tiles_along(static_cast<unsigned>(problem.k), tile.k);
  const double waves = tiles / std::max(query.device.multiprocessors, 1);
  constexpr unsigned fewest_blocks = 4;  // of k, in a slice
  constexpr std::array<std::uint16_t, 7> slice_counts{2, 3, 4, 6, 8, 12, 16};
  for (const std::uint16_t slices : slice_counts) {
    if (waves * slices > 1.5 || k_blocks < slices * fewest_blocks) break;
    add(with_split(tile, abi::SplitMode::parallel, slices));
  }
  if (waves > 0.6 && waves < 8 && k_blocks >= 2 * fewest_blocks)
    add(with_split(tile, abi::SplitMode::stream, 1));
}

}  // namespace

bool Sm80Family::takes_companions(const GemmProblem& problem) const noexcept {
  return is_mixed_sm80(problem.a.dtype, problem.b.dtype);
}

bool Sm80Family::takes_groups(const Groups& groups) const noexcept {
  return divides_tensors(groups) || is_list(groups);
}

Sm80Family::Sm80Family()
    : TemplateFamily(
          {.name = "sm80", .version = sm80_version, .targets = runtime::portable_targets}) {}

std::span<const Target> Sm80Family::target_table(const Kernel& kernel) const noexcept {
  return targets_of(kernel);
}

// Kernels tell which reductions of blocks they have.
Status Sm80Family::carries(const GemmProblem& problem) const {
  return check_something_reduced(problem);
}

// --- discovery ----------------------------------------------------------------------------------

void Sm80Family::match(const Query& query, std::vector<RankedKernel>& kernels) const {
  if (!find_type_failure(query).empty()) return;
  const GemmProblem& problem = query.problem;
  std::optional<GemmProblem> seen;  // of groups; no copy of other problems is made
  if (problem.groups) seen = as_seen_by_groups(problem, GroupStores::clipped);
  for (const OperandRules& rules : fitting_rules(seen ? *seen : problem)) {
    const Sm80Prediction prediction(problem, rules, query.device);
    const auto add = [&](const Sm80Tile& candidate) {
      const Kernel kernel(*this, rules, DesignBytes::of(candidate), problem.epilogue);
      if (find_misfit(kernel, query).empty())
        kernels.emplace_back(kernel, prediction.microseconds(candidate, rules));
    };
    for (const Sm80Tile& tile : tiles_of(problem, rules)) {
      if (problem.groups)
        walk_schedules(tile, rules, *problem.groups, add);
      else
        walk_splits(tile, rules, query, add);
    }
  }
}

Status Sm80Family::supports(const Kernel& kernel, const Query& query) const {
  const GemmProblem& problem = query.problem;
  if (Status status = check_something_reduced(problem); !status) return status;
  const Sm80Tile tile = sm80_tile(kernel);
  const bool has_groups = tile.groups != abi::GroupSchedule::none;
  if (Status status = check_groups(has_groups, kernel.operands(), problem, GroupStores::clipped);
      !status)
    return status;
  if (Status status = check_schedule(tile, problem); !status) return status;
  if (Status status = check_convolution(kernel, problem); !status) return status;
  for (const auto find_failure : {find_mixed_group_failure, find_sm80_scale_failure})
    if (std::string failure = find_failure(problem); !failure.empty())
      return Status::fail(std::move(failure));
  std::string misfit = find_misfit(kernel, query);
  return misfit.empty() ? Status::success() : Status::fail(std::move(misfit));
}

void Sm80Family::explain(const Query& query, std::vector<Reason>& reasons) const {
  Reason reason = reason_of(find_type_failure(query));
  if (!reason.failed.empty()) {
    reasons.push_back(std::move(reason));
    return;
  }
  std::vector<RankedKernel> kernels;
  match(query, kernels);
  reason.fitting = static_cast<int>(kernels.size());
  if (kernels.empty()) reason.failed = find_failure_of_kernels(*this, query);
  reasons.push_back(std::move(reason));
}

void Sm80Family::enumerate(const std::function<void(const Kernel&)>& visit) const {
  for_each_listed_sm80([&](const OperandRules& rules, const Sm80Tile& tile) {
    visit(Kernel(*this, rules, DesignBytes::of(tile)));
  });
}

// --- metadata -----------------------------------------------------------------------------------

std::string Sm80Family::kernel_name(const Kernel& kernel) const { return sm80_name(kernel); }

std::optional<Kernel> Sm80Family::read_name(std::string_view text) const {
  const auto parts = parse_sm80_name(text);
  if (!parts) return std::nullopt;
  return Kernel(*this, parts->rules, DesignBytes::of(parts->tile), parts->epilogue);
}

std::vector<DesignField> Sm80Family::design_fields(const Kernel& kernel) const {
  const Sm80Tile tile = sm80_tile(kernel);
  const abi::Sm80Design design = sm80_design(kernel);
  const abi::MmaShape mma = abi::mma_shape(design);
  std::vector<DesignField> fields{
      {"instruction", "mma"},
      {"mma", fmt::format("{}x{}x{}", mma.m, mma.n, mma.k)},
      {"tile", tile_text(tile)},
      {"warps", warps_text(tile)},
      {"threads", std::to_string(abi::thread_count(design))},
      {"split_k", split_text(tile)},
      {"stages", std::to_string(tile.stages)},
      {"raster",
       fmt::format("{}{}", tile.raster.along == abi::Along::m ? 'm' : 'n', tile.raster.band)}};
  if (abi::is_mixed(design))
    fields.push_back({"decoded", abi::decodes_a(design) != is_turned_sm80(kernel.operands(), tile)
                                     ? "A, in registers"
                                     : "B, in registers"});
  if (tile.conv != Sm80Conv::none) {
    fields.push_back({"convolution", std::string(kind_text(tile.conv))});
    fields.push_back({"dimensions", std::to_string(dimensions_of(tile.conv))});
    if (has_phases(tile.conv)) fields.push_back({"stride", "by phases"});
  }
  if (tile.groups == abi::GroupSchedule::none) return fields;
  const std::string_view where = tile.groups == abi::GroupSchedule::host ? "in a table of the host"
                                 : tile.groups == abi::GroupSchedule::list ? "a list of the host"
                                                                           : "found on the device";
  fields.push_back({"groups", std::string(where)});
  fields.push_back({"schedule", std::string(schedule_text(tile.groups))});
  if (tile.indexed == abi::IndexedExtent::rows) fields.push_back({"indices", "rows"});
  if (tile.indexed == abi::IndexedExtent::columns) fields.push_back({"indices", "columns"});
  if (tile.clears_outside) fields.push_back({"outside", "zero"});
  return fields;
}

}  // namespace gemmery::templates
