// SPDX-License-Identifier: Apache-2.0
// The simt family: which kernels serve a query, why others do not, and what they are called.
#include "providers/templates/simt/family.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernel/operand_programs.hpp"
#include "kernel/rules.hpp"
#include "operation/companions.hpp"
#include "providers/templates/constraints.hpp"
#include "providers/templates/conv_windows.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/groups.hpp"
#include "providers/templates/problem_list.hpp"
#include "providers/templates/simt/design.hpp"
#include "providers/templates/simt/prediction.hpp"
#include "runtime/portable_targets.hpp"

namespace gemmery::templates {
namespace {

// --- constraints --------------------------------------------------------------------------------

std::string find_label_failure(const GemmProblem& problem, SimtArithmetic arithmetic);

// Why sizes or a list in host memory do not fit the launch parameters; empty if they do.
std::string find_conv_failure(const GemmProblem& problem) {
  std::string failure = find_window_failure(problem);
  return failure.empty() ? find_phase_reduction_failure(problem) : failure;
}

std::string find_size_failure(const GemmProblem& problem) {
  if (problem.groups->have_indices() && !check_without_blocks(problem.epilogue))
    return "epilogue: expected a program without reductions of blocks where groups have indices, "
           "got one with";
  if (operation::has_companions(problem) &&
      (problem.groups->are_on_host || problem.groups->have_indices()))
    return "groups: expected sizes in device memory, and elements in their groups' order, beside "
           "scales that vary along k or programs, got others";
  if (is_list(*problem.groups)) return find_list_failure(problem);
  if (!problem.groups->are_on_host) return {};
  return find_table_failure(problem, sizeof(abi::SimtGroupTableParams));
}

// The first constraint that the whole family fails, in words; empty if it supports the query.
std::string find_failure(const Query& query) {
  const GemmProblem& problem = query.problem;
  const auto arithmetic = simt_arithmetic(problem.a.dtype, problem.b.dtype, problem.accumulator);
  std::string failure = find_cuda_core_failure(
      arithmetic ? simt_outputs(*arithmetic) : std::span<const DType>(), problem, query.device);
  if (failure.empty() && problem.convolution) failure = find_conv_failure(problem);
  if (!failure.empty() || !problem.groups) return failure;
  if (is_packed(problem.a.dtype) || is_packed(problem.b.dtype))
    return "types: expected elements of whole bytes in groups, got elements that share bytes";
  failure = find_group_failure(problem);
  if (failure.empty()) failure = find_outside_failure(problem);
  if (failure.empty()) failure = find_size_failure(problem);
  return failure.empty() ? find_label_failure(problem, *arithmetic) : failure;
}

// Values of blocks reuse the memory of the stages, which have at least this.
Status check_blocks_of(const SimtTile& tile, const GemmProblem& problem) {
  const bool is_double = problem.accumulator == DType::float64;
  const int k_words = problem.accumulator == DType::int32 ? tile.k / 4 : tile.k;
  return check_blocks(
      problem.epilogue,
      {.rows = tile.m,
       .columns = tile.n,
       .value_bytes = byte_width(epilogue_compute_type(problem.accumulator)) == 8 ? 8 : 4,
       .shared_bytes = (tile.m + tile.n) * k_words * (is_double ? 8 : 4) * tile.stages});
}

bool fits_operand(const OperandRule& rule, const MatrixType& matrix, std::int64_t rows,
                  std::int64_t columns) {
  return kernel::keeps_layout(rule.layout, matrix, rows, columns) &&
         kernel::run_alignment(rule.layout, matrix, rows, columns) % rule.alignment == 0;
}

// True if out (or C) consists of whole runs of one access.
bool holds_whole_runs(const OperandRule& rule, const SimtTile& tile, SimtArithmetic arithmetic,
                      const GemmProblem& problem) {
  const std::int64_t extent = rule.layout == LayoutRule::row ? problem.n : problem.m;
  return extent % simt_run_elements(rule, tile, arithmetic) == 0;
}

// True if the number of tiles of one matrix is within the limits of a grid.
bool fits_grid(const SimtTile& tile, const GemmProblem& problem) {
  if (problem.groups) return fits_grouped_grid({.m = tile.m, .n = tile.n}, problem);
  return abi::fits_grid(tile.form == SimtForm::strided_dgrad
                            ? tile_rows_of_phases(problem, tile.m)
                            : abi::tiles_along(static_cast<unsigned>(problem.m), tile.m),
                        abi::tiles_along(static_cast<unsigned>(problem.n), tile.n));
}

GroupTileExtents extents_of(const SimtTile& tile) { return {.m = tile.m, .n = tile.n}; }

std::string too_many_tiles(const SimtTile& tile, const GemmProblem& problem) {
  return too_many(fmt::format("tiles of {}x{} in a matrix", tile.m, tile.n), problem);
}

// The time of blocks to find their tiles, with two blocks on each multiprocessor.
double finding_us(const SimtTile& tile, const GemmProblem& average, const DeviceInfo& device) {
  const double tiles =
      abi::tiles_along(static_cast<unsigned>(average.m), tile.m) *
      static_cast<double>(abi::tiles_along(static_cast<unsigned>(average.n), tile.n)) *
      static_cast<double>(average.l);
  return templates::finding_us(
      average.l, std::ceil(tiles / 2 / std::max(device.multiprocessors, 1)), false, device);
}

std::string_view text_of(SimtForm form) {
  switch (form) {
    case SimtForm::indexed_rows:
      return "rows by index";
    case SimtForm::indexed_columns:
      return "columns by index";
    case SimtForm::in_table:
      return "sizes in host memory";
    case SimtForm::listed:
      return "a list of problems";
    case SimtForm::fprop:
      return "fprop";
    case SimtForm::dgrad:
      return "dgrad";
    case SimtForm::wgrad:
      return "wgrad";
    case SimtForm::strided_dgrad:
      return "dgrad";
    default:
      return "elements in their groups' order";
  }
}

SimtForm conv_of(const Convolution& convolution) {
  switch (convolution.kind) {
    case ConvKind::fprop:
      return SimtForm::fprop;
    case ConvKind::dgrad:
      return has_phases(convolution) ? SimtForm::strided_dgrad : SimtForm::dgrad;
    case ConvKind::wgrad:
      break;
  }
  return SimtForm::wgrad;
}

SimtForm form_of(const GemmProblem& problem) {
  if (problem.convolution) return conv_of(*problem.convolution);
  if (!problem.groups) return SimtForm::gemm;
  if (is_list(*problem.groups)) return SimtForm::listed;
  if (problem.groups->are_on_host) return SimtForm::in_table;
  if (!problem.groups->have_indices()) return SimtForm::ordered;
  return problem.groups->ragged == Ragged::n ? SimtForm::indexed_columns : SimtForm::indexed_rows;
}

std::span<const SimtTile> tiles_for(const GemmProblem& problem, SimtArithmetic arithmetic) {
  return simt_tiles(arithmetic, form_of(problem));
}

// Why no tile supports the problem's labels; empty if some do.
std::string find_label_failure(const GemmProblem& problem, SimtArithmetic arithmetic) {
  std::vector<GroupTileExtents> extents;
  for (const SimtTile& tile : tiles_for(problem, arithmetic)) extents.push_back(extents_of(tile));
  return templates::find_label_failure(extents, problem);
}

template <std::size_t count>
struct FittingRules {
  std::array<OperandRule, count> rules;
  std::size_t size = 0;

  FittingRules(std::span<const OperandRule> all, const MatrixType& matrix, std::int64_t rows,
               std::int64_t columns) {
    for (const OperandRule& rule : all) {
      if (fits_operand(rule, matrix, rows, columns)) rules[size++] = rule;
    }
  }
  std::span<const OperandRule> span() const { return {rules.data(), size}; }
};

// --- walking the space --------------------------------------------------------------------------

// C is read in the same runs in which out is written, so a rule for a C of the other layout is no
// better than one for any layout.
bool is_useful(const OperandRule& c, const OperandRule& out) {
  return c.layout == out.layout || c.layout == LayoutRule::any;
}

// Elements that are found by indices are not adjacent.
bool takes_indices(const OperandRules& rules, SimtForm form) {
  if (form != SimtForm::indexed_rows && form != SimtForm::indexed_columns) return true;
  const bool is_of_rows = form == SimtForm::indexed_rows;
  const LayoutRule along = is_of_rows ? LayoutRule::column : LayoutRule::row;
  return (is_of_rows ? rules.a : rules.b).layout != along && rules.out.layout != along &&
         (!rules.has_c || rules.c.layout != along);
}

// True if kernels of convolutions take these rules: channels of A are adjacent along k; pixels and
// taps of B are found one by one.
bool takes_windows(const OperandRules& rules, SimtForm form) {
  if (!is_convolution(form)) return true;
  const bool finds_a = form != SimtForm::wgrad;
  const bool finds_b = form != SimtForm::fprop;
  // Other operands are matrices with adjacent channels (of dy) or taps (of w).
  const bool fits_a =
      finds_a ? rules.a.layout == LayoutRule::row : rules.a.layout != LayoutRule::row;
  const bool fits_b =
      finds_b ? rules.b.layout == LayoutRule::any : rules.b.layout != LayoutRule::row;
  return fits_a && fits_b && rules.out.layout != LayoutRule::column &&
         (!rules.has_c || rules.c.layout != LayoutRule::column);
}

// True if no access to A crosses from one tap to the next.
bool holds_whole_channels(const OperandRules& rules, const GemmProblem& problem) {
  if (!problem.convolution || problem.convolution->kind == ConvKind::wgrad) return true;
  const auto width = static_cast<std::int64_t>(byte_width(rules.a.dtype));
  return channels_of_a(*problem.convolution) * width % rules.a.alignment == 0;
}

// Calls visit(rules, tile) for every useful combination of the given rules and tiles.
template <class Visit>
void walk(std::span<const OperandRule> a, std::span<const OperandRule> b,
          std::span<const OperandRule> out, std::span<const OperandRule> c, DType accumulator,
          std::span<const SimtTile> tiles, Visit&& visit) {
  OperandRules rules{
      .a = {}, .b = {}, .c = {}, .out = {}, .accumulator = accumulator, .has_c = !c.empty()};
  constexpr OperandRule none{};
  const std::span<const OperandRule> c_or_none = c.empty() ? std::span(&none, 1) : c;
  for (const SimtTile& tile : tiles) {
    for (const OperandRule& a_rule : a) {
      rules.a = a_rule;
      for (const OperandRule& b_rule : b) {
        rules.b = b_rule;
        for (const OperandRule& out_rule : out) {
          rules.out = out_rule;
          for (const OperandRule& c_rule : c_or_none) {
            if (rules.has_c && !is_useful(c_rule, out_rule)) continue;
            rules.c = c_rule;
            if (takes_indices(rules, tile.form) && takes_windows(rules, tile.form))
              visit(rules, tile);
          }
        }
      }
    }
  }
}

OperandRules with_companions(OperandRules rules, const GemmProblem& problem) {
  rules.a_companions = kernel::companion_rules(problem.a_companions);
  rules.b_companions = kernel::companion_rules(problem.b_companions);
  return rules;
}

// The time of scaled operands relative to that of plain ones. An estimate: not timed on a device.
double scaling_factor(const GemmProblem& problem) {
  const auto factor = [](const OperandCompanions& companions) {
    if (companions.empty()) return 1.0;
    return companions.program ? 2.0 : 1.5;
  };
  return factor(problem.a_companions) * factor(problem.b_companions);
}

DType accumulator_of(SimtArithmetic arithmetic) {
  switch (arithmetic) {
    case SimtArithmetic::f32:
      return DType::float32;
    case SimtArithmetic::f64:
      return DType::float64;
    case SimtArithmetic::integer:
      return DType::int32;
  }
  return DType::float32;
}

}  // namespace

bool SimtFamily::takes_companions(const GemmProblem& problem) const noexcept {
  return !problem.convolution;
}

bool SimtFamily::takes_operand_programs(const GemmProblem& problem) const noexcept {
  return !problem.convolution;
}

bool SimtFamily::takes_groups(const Groups& groups) const noexcept {
  return divides_tensors(groups) || is_list(groups);
}

SimtFamily::SimtFamily()
    : TemplateFamily(
          {.name = "simt", .version = simt_version, .targets = runtime::portable_targets}) {}

// The widest tiles that this family has.
Status SimtFamily::carries(const GemmProblem& problem) const {
  if (Status status = check_blocks(problem.epilogue, {128, 128, 0, 0}); !status) return status;
  return check_something_reduced(problem);
}

// --- discovery ----------------------------------------------------------------------------------

void SimtFamily::match(const Query& query, std::vector<RankedKernel>& kernels) const {
  if (!find_failure(query).empty()) return;
  std::optional<GemmProblem> seen, average;  // of grouped problems; other problems are not copied
  if (query.problem.groups) {
    seen = as_seen_by_groups(query.problem);
    average = average_groups(query.problem);
  }
  const GemmProblem& problem = seen ? *seen : query.problem;
  const SimtArithmetic arithmetic =
      *simt_arithmetic(problem.a.dtype, problem.b.dtype, problem.accumulator);
  const FittingRules<5> a(simt_input_rules(problem.a.dtype).span(), problem.a, problem.m,
                          problem.k);
  const FittingRules<5> b(simt_input_rules(problem.b.dtype).span(), problem.b, problem.k,
                          problem.n);
  const FittingRules<3> out(simt_output_rules(problem.out.dtype), problem.out, problem.m,
                            problem.n);
  const MatrixType& c_matrix = problem.c ? *problem.c : problem.out;
  const FittingRules<3> c(simt_output_rules(c_matrix.dtype), c_matrix, problem.m, problem.n);
  const std::span<const OperandRule> c_rules =
      problem.c ? c.span() : std::span<const OperandRule>{};
  const GemmProblem& timed = average ? *average : problem;
  const OperandProgramsId programs = kernel::operand_programs(problem);
  const SimtPrediction prediction(timed, arithmetic, query.device);
  for (const SimtTile& tile : tiles_for(problem, arithmetic)) {
    if (!fits_grid(tile, problem) || !fits_labels(extents_of(tile), problem)) continue;
    if (!check_blocks_of(tile, problem)) continue;
    const double padding = padding_factor(timed, tile);
    const double finding = average ? finding_us(tile, *average, query.device) : 0;
    const DesignBytes design = DesignBytes::of(tile);
    const auto add = [&](const OperandRules& rules, const SimtTile&) {
      if (!holds_whole_runs(rules.out, tile, arithmetic, problem)) return;
      if (!holds_whole_channels(rules, problem)) return;
      if (rules.has_c && !holds_whole_runs(rules.c, tile, arithmetic, problem)) return;
      OperandRules scaled = with_companions(rules, problem);
      scaled.programs = programs;
      kernels.emplace_back(
          Kernel(*this, scaled, design, problem.epilogue),
          prediction.microseconds(tile, rules) * padding * scaling_factor(problem) + finding);
    };
    walk(a.span(), b.span(), out.span(), c_rules, problem.accumulator, std::span(&tile, 1), add);
  }
}

Status SimtFamily::supports(const Kernel& kernel, const Query& query) const {
  const GemmProblem& problem = query.problem;
  const OperandRules& rules = kernel.operands();
  const SimtTile tile = simt_tile(kernel);
  if (Status status = check_something_reduced(problem); !status) return status;
  if (Status status = check_blocks_of(tile, problem); !status) return status;
  if (Status status = check_groups(are_groups(tile.form), rules, problem); !status) return status;
  if (is_convolution(tile.form) != problem.convolution.has_value())
    return Status::fail(problem.convolution ? "operation: expected a GEMM, got a convolution"
                                            : "operation: expected a convolution, got a GEMM");
  if (tile.form != form_of(problem))
    return Status::fail(
        fmt::format("groups: expected {}, got {}", text_of(tile.form), text_of(form_of(problem))));
  const auto arithmetic = *simt_arithmetic(rules.a.dtype, rules.b.dtype, rules.accumulator);
  const auto check = [&](const char* operand, const OperandRule& rule) {
    if (holds_whole_runs(rule, tile, arithmetic, problem)) return Status::success();
    return Status::fail(fmt::format("{}: expected {} a multiple of {} for vector stores, got {}",
                                    operand, rule.layout == LayoutRule::row ? "N" : "M",
                                    simt_run_elements(rule, tile, arithmetic),
                                    rule.layout == LayoutRule::row ? problem.n : problem.m));
  };
  if (problem.convolution) {
    std::string failure = find_conv_failure(problem);
    if (failure.empty() && !holds_whole_channels(rules, problem))
      failure =
          fmt::format("A: expected channels of a tap in multiples of {} bytes", rules.a.alignment);
    if (!failure.empty()) return Status::fail(std::move(failure));
  }
  if (problem.groups) {
    std::string failure = find_outside_failure(problem);
    if (failure.empty()) failure = find_size_failure(problem);
    if (!failure.empty()) return Status::fail(std::move(failure));
  }
  const GroupTileExtents extents[] = {extents_of(tile)};
  if (std::string failure = templates::find_label_failure(extents, problem); !failure.empty())
    return Status::fail(std::move(failure));
  if (!fits_grid(tile, problem)) return Status::fail(too_many_tiles(tile, problem));
  if (Status status = check("out", rules.out); !status) return status;
  return rules.has_c ? check("C", rules.c) : Status::success();
}

void SimtFamily::explain(const Query& query, std::vector<Reason>& reasons) const {
  Reason reason = reason_of(find_failure(query));
  std::vector<RankedKernel> kernels;
  if (!reason.failed.empty()) {
    // The same problem, if its arithmetic is one that the family supports.
    GemmProblem served = query.problem;
    served.accumulator = default_accumulator(served);
    served.math = Math::native;
    match({served, query.device}, kernels);
    std::ranges::sort(kernels, {}, &RankedKernel::predicted_us);
    for (std::size_t i = 0; i < std::min<std::size_t>(kernels.size(), 3); ++i)
      reason.nearest.push_back(kernels[i]);
    reasons.push_back(std::move(reason));
    return;
  }
  match(query, kernels);
  const GemmProblem& problem = query.problem;
  for (const SimtTile& tile : tiles_for(
           problem, *simt_arithmetic(problem.a.dtype, problem.b.dtype, problem.accumulator))) {
    Reason of_tile = reason;
    of_tile.design_class = tile_text(tile);
    of_tile.fitting = static_cast<int>(std::ranges::count_if(
        kernels, [&](const RankedKernel& one) { return simt_tile(one) == tile; }));
    if (!fits_grid(tile, problem)) of_tile.failed = too_many_tiles(tile, problem);
    reasons.push_back(std::move(of_tile));
  }
}

void SimtFamily::enumerate(const std::function<void(const Kernel&)>& visit) const {
  constexpr DType floats[] = {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn,
                              DType::float8_e5m2};
  constexpr DType doubles[] = {DType::float64};
  constexpr DType bytes[] = {DType::int8, DType::uint8};
  const auto walk_types = [&](SimtArithmetic arithmetic, std::span<const DType> inputs) {
    const auto add = [&](const OperandRules& rules, const SimtTile& tile) {
      visit(Kernel(*this, rules, DesignBytes::of(tile)));
    };
    const auto outputs = simt_outputs(arithmetic);
    for (const DType a : inputs) {
      for (const DType b : inputs) {
        for (const DType out : outputs) {
          const auto a_rules = simt_input_rules(a);
          const auto b_rules = simt_input_rules(b);
          const auto out_rules = simt_output_rules(out);
          for (std::size_t form = 0; form < simt_form_count; ++form) {
            const auto tiles = simt_tiles(arithmetic, static_cast<SimtForm>(form));
            walk(a_rules.span(), b_rules.span(), out_rules, {}, accumulator_of(arithmetic), tiles,
                 add);
            for (const DType c : outputs) {
              const auto c_rules = simt_output_rules(c);
              walk(a_rules.span(), b_rules.span(), out_rules, c_rules, accumulator_of(arithmetic),
                   tiles, add);
            }
          }
        }
      }
    }
  };
  walk_types(SimtArithmetic::f32, floats);
  walk_types(SimtArithmetic::f64, doubles);
  walk_types(SimtArithmetic::integer, bytes);
}

// --- metadata -----------------------------------------------------------------------------------

std::string SimtFamily::kernel_name(const Kernel& kernel) const { return simt_name(kernel); }

std::optional<Kernel> SimtFamily::read_name(std::string_view text) const {
  const auto parts = parse_simt_name(text);
  if (!parts) return std::nullopt;
  return Kernel(*this, parts->rules, DesignBytes::of(parts->tile), parts->epilogue);
}

std::vector<DesignField> SimtFamily::design_fields(const Kernel& kernel) const {
  const SimtTile tile = simt_tile(kernel);
  std::vector<DesignField> fields{
      {"instruction", kernel.operands().accumulator == DType::int32 ? "dp4a" : "fma"},
      {"tile", tile_text(tile)},
      {"thread_tile", fmt::format("{}x{}", tile.thread_m, tile.thread_n)},
      {"threads", std::to_string(threads_of(tile))},
      {"k_slices", std::to_string(tile.k_slices)},
      {"stages", std::to_string(tile.stages)}};
  if (tile.form == SimtForm::in_table) {
    fields.push_back({"groups", "in a table of the host"});
  } else if (tile.form == SimtForm::listed) {
    fields.push_back({"groups", "a list of the host"});
  } else if (are_groups(tile.form)) {
    fields.push_back({"groups", "found on the device"});
  }
  if (tile.form == SimtForm::indexed_rows) fields.push_back({"indices", "rows"});
  if (tile.form == SimtForm::indexed_columns) fields.push_back({"indices", "columns"});
  if (is_convolution(tile.form)) fields.push_back({"convolution", std::string(text_of(tile.form))});
  if (tile.form == SimtForm::strided_dgrad) fields.push_back({"stride", "by phases"});
  return fields;
}

}  // namespace gemmery::templates
