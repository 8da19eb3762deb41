// SPDX-License-Identifier: Apache-2.0
// The skinny family: which kernels serve a query, why others do not, and what they are called.
#include "providers/templates/skinny/family.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernel/rules.hpp"
#include "providers/templates/constraints.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/skinny/design.hpp"
#include "providers/templates/skinny/prediction.hpp"
#include "runtime/portable_targets.hpp"

namespace gemmery::templates {
namespace {

constexpr std::array sides{SkinnySide::m, SkinnySide::n};

// The targets that have enough registers for the kernel.
std::span<const Target> targets_of(const Kernel& kernel) {
  constexpr int later = 100;
  const std::span<const Target> all = runtime::portable_targets;
  if (abi::has_registers(skinny_design(kernel), later)) return all;
  const auto first =
      std::ranges::find_if(all, [](Target target) { return target.architecture >= later; });
  return all.first(static_cast<std::size_t>(first - all.begin()));
}

// --- constraints --------------------------------------------------------------------------------

// The first constraint that the whole family fails, in words; empty if it supports the query.
std::string find_failure(const Query& query) {
  const GemmProblem& problem = query.problem;
  std::string failure = find_cuda_core_failure(
      skinny_outputs(problem.a.dtype, problem.b.dtype, problem.accumulator), problem, query.device);
  if (failure.empty() && !skinny_rows(std::min(problem.m, problem.n))) {
    failure =
        fmt::format("out: expected at most 8 rows or columns, got {}x{}", problem.m, problem.n);
  }
  return failure;
}

bool fits_operand(const OperandRule& rule, const MatrixType& matrix, std::int64_t rows,
                  std::int64_t columns) {
  return kernel::keeps_layout(rule.layout, matrix, rows, columns) &&
         kernel::run_alignment(rule.layout, matrix, rows, columns) % rule.alignment == 0;
}

// Why the columns do not consist of whole runs, in words; empty if they do.
std::string find_partial_run(const char* operand, std::int64_t run, const SkinnyTile& tile,
                             const GemmProblem& problem) {
  const std::int64_t columns = skinny_column_count(tile, problem);
  if (columns % run == 0) return {};
  return fmt::format("{}: expected {} a multiple of {} for vectors of that width, got {}", operand,
                     is_turned(tile) ? "M" : "N", run, columns);
}

std::string find_misfit(const Kernel& kernel, const Query& query) {
  const GemmProblem& problem = query.problem;
  const SkinnyTile tile = skinny_tile(kernel);
  const abi::SkinnyDesign design = skinny_design(kernel);
  if (!abi::has_registers(design, query.device.target.architecture))
    return find_device_failure(targets_of(kernel), query.device);
  if (skinny_row_count(tile, problem) > tile.rows) {
    return fmt::format("out: expected at most {} {}, got {}", tile.rows,
                       is_turned(tile) ? "columns" : "rows", skinny_row_count(tile, problem));
  }
  const char* const streamed = is_turned(tile) ? "A" : "B";
  std::string misfit = find_partial_run(streamed, skinny_long_run(design), tile, problem);
  if (misfit.empty())
    misfit = find_partial_run("out", skinny_widest_run(kernel.operands().out), tile, problem);
  if (misfit.empty() && design.has_c)
    misfit = find_partial_run("C", skinny_widest_run(kernel.operands().c), tile, problem);
  if (!misfit.empty()) return misfit;
  const double units = static_cast<double>(problem.l) * tile.slices *
                       abi::tiles_along(static_cast<unsigned>(skinny_column_count(tile, problem)),
                                        abi::tile_columns(design));
  if (units > 0x7fffffff)
    return too_many(fmt::format("slices of {} columns", abi::tile_columns(design)), problem);
  return {};
}

// --- walking the space --------------------------------------------------------------------------

// The rules that each operand may have.
struct RuleLists {
  std::vector<OperandRule> streamed;
  std::vector<OperandRule> other;
  std::vector<OperandRule> out;
  std::vector<OperandRule> c;  // an empty rule if there is no C
};

// Calls visit(rules) for every combination; `rules` has the common fields.
template <class Visit>
void walk(const RuleLists& lists, OperandRules rules, SkinnySide side, Visit&& visit) {
  for (const OperandRule& streamed : lists.streamed) {
    for (const OperandRule& other : lists.other) {
      rules.a = side == SkinnySide::m ? other : streamed;
      rules.b = side == SkinnySide::m ? streamed : other;
      for (const OperandRule& out : lists.out) {
        rules.out = out;
        for (const OperandRule& c : lists.c) {
          rules.c = c;
          visit(std::as_const(rules));
        }
      }
    }
  }
}

// One operand of a problem.
struct Extents {
  const MatrixType& matrix;
  std::int64_t rows;
  std::int64_t columns;
};

// The rules of a list that an operand satisfies: the first one of each layout, and rules for any
// layout only if no other one fits. `is_whole(rule)`: true if the operand consists of whole vectors
// of the rule.
template <class IsWhole>
std::vector<OperandRule> fitting(const std::vector<OperandRule>& rules, const Extents& operand,
                                 IsWhole&& is_whole) {
  std::vector<OperandRule> fit;
  for (const OperandRule& rule : rules) {
    const bool has_better = std::ranges::any_of(fit, [&](const OperandRule& other) {
      return other.layout == rule.layout || rule.layout == LayoutRule::any;
    });
    if (!has_better && is_whole(rule) &&
        fits_operand(rule, operand.matrix, operand.rows, operand.columns))
      fit.push_back(rule);
  }
  return fit;
}

RuleLists fitting_rules(const GemmProblem& problem, SkinnySide side, std::uint8_t rows) {
  const bool is_m = side == SkinnySide::m;
  const Extents a{problem.a, problem.m, problem.k};
  const Extents b{problem.b, problem.k, problem.n};
  const Extents& streamed = is_m ? b : a;
  const std::int64_t columns = is_m ? problem.n : problem.m;
  const auto is_streamed_whole = [&](const OperandRule& rule) {
    return !is_along_columns(rule, side) ||
           columns * static_cast<std::int64_t>(byte_width(rule.dtype)) % rule.alignment == 0;
  };
  const auto is_stored_whole = [&](const OperandRule& rule) {
    return columns % skinny_widest_run(rule) == 0;
  };
  const auto is_any = [](const OperandRule&) { return true; };
  const auto of_output = [&](const MatrixType& matrix) {
    return fitting(skinny_output_rules(matrix.dtype, side), {matrix, problem.m, problem.n},
                   is_stored_whole);
  };
  return {
      .streamed = fitting(skinny_long_rules(streamed.matrix.dtype, side, rows), streamed,
                          is_streamed_whole),
      .other = fitting(skinny_short_rules((is_m ? a : b).matrix.dtype, side), is_m ? a : b, is_any),
      .out = of_output(problem.out),
      .c = problem.c ? of_output(*problem.c) : std::vector<OperandRule>(1)};
}

OperandRules common_rules(DType accumulator, bool has_c) {
  return {.a = {}, .b = {}, .c = {}, .out = {}, .accumulator = accumulator, .has_c = has_c};
}

}  // namespace

SkinnyFamily::SkinnyFamily()
    : TemplateFamily(
          {.name = "skinny", .version = skinny_version, .targets = runtime::portable_targets}) {}

std::span<const Target> SkinnyFamily::target_table(const Kernel& kernel) const noexcept {
  return targets_of(kernel);
}

// --- discovery ----------------------------------------------------------------------------------

void SkinnyFamily::match(const Query& query, std::vector<RankedKernel>& kernels) const {
  if (!find_failure(query).empty()) return;
  const GemmProblem& problem = query.problem;
  for (const SkinnySide side : sides) {
    const auto rows = skinny_rows(side == SkinnySide::m ? problem.m : problem.n);
    if (!rows) continue;
    const auto add = [&](const OperandRules& rules) {
      for (const SkinnyTile& plain : skinny_tiles(rules, side, *rows)) {
        for (const SkinnyTile& tile : with_splits(plain, rules, problem, query.device)) {
          const Kernel kernel(*this, rules, DesignBytes::of(tile), problem.epilogue);
          if (find_misfit(kernel, query).empty())
            kernels.emplace_back(kernel, predict_skinny_us(tile, rules, problem, query.device));
        }
      }
    };
    walk(fitting_rules(problem, side, *rows),
         common_rules(problem.accumulator, problem.c.has_value()), side, add);
  }
}

Status SkinnyFamily::supports(const Kernel& kernel, const Query& query) const {
  if (Status status = check_carried(query.problem); !status) return status;
  std::string misfit = find_misfit(kernel, query);
  return misfit.empty() ? Status::success() : Status::fail(std::move(misfit));
}

void SkinnyFamily::explain(const Query& query, std::vector<Reason>& reasons) const {
  Reason reason = reason_of(find_failure(query));
  if (reason.failed.empty()) {
    std::vector<RankedKernel> kernels;
    match(query, kernels);
    reason.fitting = static_cast<int>(kernels.size());
    if (kernels.empty()) reason.failed = too_many("slices of columns", query.problem);
  }
  reasons.push_back(std::move(reason));
}

// Enumerates the kernels that discovery offers, except some access widths between an element and 8
// bytes, and a C of another layout than out.
void SkinnyFamily::enumerate(const std::function<void(const Kernel&)>& visit) const {
  const auto visit_tiles = [&](const OperandRules& rules, SkinnySide side, std::uint8_t rows) {
    if (rules.has_c && rules.c.layout != rules.out.layout) return;
    for (const SkinnyTile& tile : skinny_tiles(rules, side, rows))
      visit(Kernel(*this, rules, DesignBytes::of(tile)));
  };
  for (const SkinnyProducts& products : skinny_products()) {
    const auto outputs = skinny_outputs(products.a, products.b, products.accumulator);
    for (const SkinnySide side : sides) {
      const bool is_m = side == SkinnySide::m;
      for (const std::uint8_t rows : skinny_row_counts) {
        RuleLists lists{.streamed = skinny_long_rules(is_m ? products.b : products.a, side, rows),
                        .other = skinny_short_rules(is_m ? products.a : products.b, side),
                        .out = {},
                        .c = std::vector<OperandRule>(1)};
        std::erase_if(lists.streamed, [](const OperandRule& rule) {
          return rule.alignment < 8 && rule.alignment > byte_width(rule.dtype);
        });
        std::vector<OperandRule> c_rules;
        for (const DType out : outputs) {
          for (const OperandRule& rule : skinny_output_rules(out, side)) {
            lists.out.push_back(rule);
            c_rules.push_back(rule);
          }
        }
        const auto add = [&](const OperandRules& rules) { visit_tiles(rules, side, rows); };
        walk(lists, common_rules(products.accumulator, false), side, add);
        lists.c = std::move(c_rules);
        walk(lists, common_rules(products.accumulator, true), side, add);
      }
    }
  }
}

// --- metadata -----------------------------------------------------------------------------------

std::string SkinnyFamily::kernel_name(const Kernel& kernel) const { return skinny_name(kernel); }

std::optional<Kernel> SkinnyFamily::read_name(std::string_view text) const {
  const auto parts = parse_skinny_name(text);
  if (!parts) return std::nullopt;
  return Kernel(*this, parts->rules, DesignBytes::of(parts->tile), parts->epilogue);
}

std::vector<DesignField> SkinnyFamily::design_fields(const Kernel& kernel) const {
  const SkinnyTile tile = skinny_tile(kernel);
  const abi::SkinnyDesign design = skinny_design(kernel);
  const std::string columns = std::to_string(abi::tile_columns(design));
  const std::string rows = std::to_string(tile.rows);
  return {{"instruction", kernel.operands().accumulator == DType::int32 ? "dp4a" : "fma"},
          {"rows", rows_text(tile)},
          {"tile", fmt::format("{}x{}x{}", is_turned(tile) ? columns : rows,
                               is_turned(tile) ? rows : columns, abi::split_unit(design))},
          {"threads", std::to_string(tile.threads)},
          {"loads", std::to_string(tile.loads)},
          {"slots", std::to_string(tile.slots)},
          {"lanes", std::to_string(tile.lanes)},
          {"split_k", split_text(split_word(tile))}};
}

}  // namespace gemmery::templates
