// SPDX-License-Identifier: Apache-2.0
// The queries that sm90 kernels support, and the reasons why they do not support others.
#include "providers/templates/sm90/constraints.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "device/abi/simt_design.hpp"
#include "kernel/rules.hpp"
#include "operation/companions.hpp"
#include "providers/templates/constraints.hpp"
#include "providers/templates/name_words.hpp"
#include "providers/templates/problem_list.hpp"
#include "providers/templates/repacking.hpp"
#include "providers/templates/sm90/convolution.hpp"
#include "providers/templates/sm90/program.hpp"
#include "providers/templates/sm90/scales.hpp"
#include "providers/templates/tma_view.hpp"

namespace gemmery::templates {

constexpr LayoutRule adjacent_layouts[] = {LayoutRule::row, LayoutRule::column};

namespace {

OperandRule rule_of(DType dtype, LayoutRule layout) {
  return {.dtype = dtype, .layout = layout, .alignment = widest_access};
}

bool keeps(const OperandRule& rule, const ProductOperand& operand) {
  return kernel::keeps_layout(rule.layout, operand.source, operand.rows, operand.columns) &&
         kernel::run_alignment(rule.layout, operand.source, operand.rows, operand.columns) %
                 rule.alignment ==
             0;
}

using OperandOf = OperandRule OperandRules::*;

// True if A or B (`operand`) can be multiplied under this rule.
bool serves(const GemmProblem& problem, OperandOf operand, const OperandRule& rule) {
  OperandRules rules;
  rules.*operand = rule;
  const ProductOperand product =
      operand == &OperandRules::a ? product_a(rules, problem) : product_b(rules, problem);
  return keeps(rule, product) && find_misfit(product).empty();
}

// True for an operand of codes beside 16-bit floats.
bool has_codes(const GemmProblem& problem, OperandOf operand) {
  const DType a = problem.a.dtype;
  const DType b = problem.b.dtype;
  return operand == &OperandRules::a ? decodes_a_sm90(a, b) : decodes_a_sm90(b, a);
}

// True if a copy in which k is adjacent may be multiplied in less time, itself included: wgmma
// takes operands of 8 and 32 bits only so, others are transposed again for every tile that uses
// them.
bool is_worth_turning(const GemmProblem& problem, OperandOf operand, LayoutRule layout) {
  constexpr std::int64_t many = 1024;
  const bool is_a = operand == &OperandRules::a;
  const LayoutRule k_adjacent = is_a ? LayoutRule::row : LayoutRule::column;
  return byte_width(is_a ? problem.a.dtype : problem.b.dtype) != 2 && layout != k_adjacent &&
         !problem.groups && std::min({problem.m, problem.n, problem.k}) >= many;
}

// The rules for A or B. Of codes: only those that TMA can load, with k adjacent. Of others, if TMA
// can load it: row or column layout, and a copy that is turned where that may be worth it.
// Otherwise, if it can be repacked along rows or columns: that layout with any alignment. Otherwise
// any strides.
std::span<const OperandRule> find_inputs(const GemmProblem& problem, OperandOf operand,
                                         std::array<OperandRule, 2>& rules) {
  const DType dtype = operand == &OperandRules::a ? problem.a.dtype : problem.b.dtype;
  std::size_t count = 0;
  const auto add = [&](const OperandRule& rule) {
    if (serves(problem, operand, rule)) rules[count++] = rule;
  };
  if (has_codes(problem, operand)) {
    add(rule_of(dtype, operand == &OperandRules::a ? LayoutRule::row : LayoutRule::column));
    return {rules.data(), count};
  }
  for (const LayoutRule layout : adjacent_layouts) add(rule_of(dtype, layout));
  if (count == 1 && is_worth_turning(problem, operand, rules[0].layout))
    add(repacked_rule(dtype, LayoutRule::any));
  if (count == 0)
    for (const LayoutRule layout : adjacent_layouts) add(repacked_rule(dtype, layout));
  if (count == 0) add(repacked_rule(dtype, LayoutRule::any));
  return {rules.data(), count};
}

// The same, or the only rule of a convolution if kernels take it.
std::span<const OperandRule> find_operand(const GemmProblem& problem, OperandOf operand,
                                          std::array<OperandRule, 2>& rules) {
  if (!problem.convolution) return find_inputs(problem, operand, rules);
  if (!find_sm90_conv_failure(problem).empty()) return {};
  rules[0] = sm90_conv_rules(problem)[operand == &OperandRules::a ? 0 : 1];
  return std::span(rules).first(1);
}

// Threads store to any address; extents are limited as for TMA.
std::string find_output_misfit(const OperandRule& rule, const GemmProblem& problem) {
  TmaView view = view_of(rule, problem.out, problem.m, problem.n, problem.l);
  if (rule.alignment < widest_access) view.stride_bytes = view.batch_stride_bytes = widest_access;
  return find_misfit("out", view);
}

// The rules for out. If TMA can store it, which it does not in lists: row or column layout.
// Otherwise, if threads can store along rows or columns: that layout, with accesses as wide as its
// alignment. Otherwise any strides.
std::span<const OperandRule> find_outputs(const GemmProblem& problem,
                                          std::array<OperandRule, 2>& rules) {
  // Channels of a convolution's out are adjacent.
  const auto layouts = std::span(templates::adjacent_layouts).first(problem.convolution ? 1 : 2);
  const MatrixType& out = problem.out;
  std::size_t count = 0;
  const auto add = [&](LayoutRule layout, int widest) {
    const int aligned =
        std::min<int>(kernel::run_alignment(layout, out, problem.m, problem.n), widest);
    const OperandRule rule{
        .dtype = out.dtype, .layout = layout, .alignment = static_cast<std::uint8_t>(aligned)};
    const bool fits =
        kernel::keeps_layout(layout, out, problem.m, problem.n) &&
        (widest == widest_access ? aligned == widest_access
                                 : aligned >= static_cast<int>(byte_width(out.dtype)));
    if (fits && find_output_misfit(rule, problem).empty()) rules[count++] = rule;
  };
  constexpr int widest_of_threads = 8;
  const bool is_by_threads = problem.groups && is_list(*problem.groups);
  if (!is_by_threads)
    for (const LayoutRule layout : layouts) add(layout, widest_access);
  if (count == 0)
    for (const LayoutRule layout : layouts) add(layout, widest_of_threads);
  if (count == 0) add(LayoutRule::any, static_cast<int>(byte_width(out.dtype)));
  return {rules.data(), count};
}

// C is read in pairs if it has the layout of out and is aligned, otherwise element by element.
OperandRule find_addend(const GemmProblem& problem, const OperandRule& out) {
  if (!problem.c) return {};
  const bool fits =
      out.layout != LayoutRule::any &&
      kernel::keeps_layout(out.layout, *problem.c, problem.m, problem.n) &&
      kernel::run_alignment(out.layout, *problem.c, problem.m, problem.n) == widest_access;
  return fits ? rule_of(problem.c->dtype, out.layout)
              : repacked_rule(problem.c->dtype, LayoutRule::any);
}

// The rule that fits A or B, or that of a repacked copy if none does.
OperandRule nearest_input(const GemmProblem& problem, OperandOf operand) {
  std::array<OperandRule, 2> rules;
  const auto fitting = find_inputs(problem, operand, rules);
  const DType dtype = operand == &OperandRules::a ? problem.a.dtype : problem.b.dtype;
  return fitting.empty() ? repacked_rule(dtype, LayoutRule::any) : fitting.front();
}

// The rules of a convolution, whatever its out is.
OperandRules conv_rules(const GemmProblem& problem) {
  const auto [a, b] = sm90_conv_rules(problem);
  return {.a = a, .b = b, .c = {}, .out = repacked_rule(problem.out.dtype, LayoutRule::any)};
}

// Why no layout fits: codes that TMA cannot load with k adjacent, or the failure of the least
// demanding rules.
std::string find_layout_failure(const GemmProblem& problem) {
  for (const OperandOf operand : {&OperandRules::a, &OperandRules::b}) {
    std::array<OperandRule, 2> rules;
    if (has_codes(problem, operand) && find_inputs(problem, operand, rules).empty())
      return fmt::format(
          "{}: expected codes with k adjacent, in {} aligned to {} bytes, got other strides",
          operand == &OperandRules::a ? "A" : "B", operand == &OperandRules::a ? "rows" : "columns",
          widest_access);
  }
  return find_misfit(OperandRules{.a = nearest_input(problem, &OperandRules::a),
                                  .b = nearest_input(problem, &OperandRules::b),
                                  .c = {},
                                  .out = repacked_rule(problem.out.dtype, LayoutRule::any)},
                     problem);
}

}  // namespace

// --- failures -----------------------------------------------------------------------------------

// A stage is not cleared beyond the k of a group, and kernels that look up elements have other
// operands.
std::string find_code_group_failure(const GemmProblem& problem) {
  if (!problem.groups || !is_mixed_sm90(problem.a.dtype, problem.b.dtype)) return {};
  const Groups& groups = *problem.groups;
  if (groups.ragged == Ragged::k)
    return "groups: expected ones along M or N beside codes, got groups along K";
  if (is_list(groups) || groups.have_indices())
    return "groups: expected elements of one problem in their groups' order beside codes, got "
           "others";
  if (groups.are_on_host && operation::has_companions(problem))
    return "groups: expected sizes in device memory beside scales of codes, got them in host "
           "memory";
  return {};
}

std::string find_sm90_type_failure(const Query& query) {
  const GemmProblem& problem = query.problem;
  std::string failure = find_device_failure(sm90_targets, query.device);
  if (!failure.empty()) return failure;
  if (!sm90_products_of(problem)) {
    return fmt::format(
        "types: expected A and B both float16 or bfloat16, 8-bit integers with int32 accumulators, "
        "8-bit floats, float32 with math=tf32, tf32x3, bf16x3, bf16x6 or bf16x9, or codes of 4 or "
        "8 "
        "bits beside float16 or bfloat16, got {} and {} with accumulators of {} and math={}",
        name(problem.a.dtype), name(problem.b.dtype), name(problem.accumulator),
        name(problem.math));
  }
  if (problem.convolution && is_mixed_sm90(problem.a.dtype, problem.b.dtype))
    return fmt::format("types: expected equal types in a convolution, got {} times {}",
                       name(problem.a.dtype), name(problem.b.dtype));
  if (failure = find_code_group_failure(problem); !failure.empty()) return failure;
  failure = find_output_failure(sm90_outputs(problem.a.dtype, problem.b.dtype),
                                sm90_addends(problem.a.dtype, problem.b.dtype), problem);
  return failure.empty() ? find_sm90_scale_failure(problem) : failure;
}

std::string find_sm90_failure(const Query& query) {
  std::string failure = find_sm90_type_failure(query);
  if (!failure.empty()) return failure;
  if (query.problem.convolution) return find_misfit(conv_rules(query.problem), query.problem);
  return FittingLayouts(query.problem).is_empty() ? find_layout_failure(query.problem) : "";
}

std::string find_misfit(const OperandRules& rules, const GemmProblem& problem) {
  std::string misfit;
  if (problem.convolution) {
    misfit = find_sm90_conv_failure(problem);
  } else {
    misfit = find_misfit(product_a(rules, problem));
    if (misfit.empty()) misfit = find_misfit(product_b(rules, problem));
  }
  return misfit.empty() ? find_output_misfit(rules.out, problem) : misfit;
}

std::string find_program_failure(const GemmProblem& problem) {
  for (const OperandRules& rules : FittingLayouts(problem)) {
    const Status blocks =
        check_sm90_blocks(problem.epilogue, is_turned(rules), widest_staging(rules));
    if (!blocks) return blocks.error();
    const ProgramTensors tensors = program_tensors(problem.epilogue, is_turned(rules));
    for (const Sm90Tile& tile : sm90_tiles(rules)) {
      const abi::Sm90Design design = with_program(sm90_design(rules, tile), tensors);
      std::string misfit =
          find_misfit(list_tma_inputs(problem, rules, design, tensors), problem.epilogue);
      if (!misfit.empty()) return misfit;
    }
  }
  return {};
}

// --- layouts ------------------------------------------------------------------------------------

std::array<OperandRules, sm90_layout_count> sm90_layouts(const Sm90Products& products, DType out,
                                                         std::optional<DType> c) {
  std::array<OperandRules, sm90_layout_count> all;
  std::size_t count = 0;
  for (const LayoutRule a_layout : adjacent_layouts) {
    for (const LayoutRule b_layout : adjacent_layouts) {
      for (const LayoutRule out_layout : adjacent_layouts) {
        all[count++] = {.a = rule_of(products.a, a_layout),
                        .b = rule_of(products.b, b_layout),
                        .c = c ? rule_of(*c, out_layout) : OperandRule{},
                        .out = rule_of(out, out_layout),
                        .accumulator = products.accumulator,
                        .math = products.math,
                        .has_c = c.has_value()};
      }
    }
  }
  return all;
}

FittingLayouts::FittingLayouts(const GemmProblem& problem) {
  const auto products = sm90_products_of(problem);
  if (!products) return;
  std::array<OperandRule, 2> a_rules;
  std::array<OperandRule, 2> b_rules;
  const auto of_a = find_operand(problem, &OperandRules::a, a_rules);
  const auto of_b = find_operand(problem, &OperandRules::b, b_rules);
  std::array<OperandRule, 2> out_rules;
  const auto of_out = find_outputs(problem, out_rules);
  for (const OperandRule& a : of_a) {
    for (const OperandRule& b : of_b) {
      for (const OperandRule& out : of_out) {
        rules_[count_++] = {.a = a,
                            .b = b,
                            .c = find_addend(problem, out),
                            .out = out,
                            .accumulator = products->accumulator,
                            .math = products->math,
                            .has_c = problem.c.has_value(),
                            .a_companions = kernel::companion_rules(problem.a_companions),
                            .b_companions = kernel::companion_rules(problem.b_companions)};
      }
    }
  }
}

// --- tiles of a problem -------------------------------------------------------------------------

namespace {

// Elements of k in one stage.
std::int64_t k_of_stage(const GemmProblem& problem) {
  const std::size_t wider = std::max(byte_width(problem.a.dtype), byte_width(problem.b.dtype));
  return abi::sm90_swizzle_bytes / static_cast<std::int64_t>(wider);
}

}  // namespace

bool fits_count(const Sm90TileCounts& tiles, std::int64_t batches) {
  const std::uint64_t per_matrix = std::uint64_t{tiles.rows} * tiles.columns;
  constexpr std::uint64_t limit = 0x7fffffff;
  return per_matrix <= limit &&
         (per_matrix == 0 || static_cast<std::uint64_t>(batches) <= limit / per_matrix);
}

bool fits_count(const Sm90Extents& extents, const Sm90Tile& tile, const GemmProblem& problem) {
  const Sm90TileCounts tiles = count_tiles(extents, tile);
  const std::int64_t batches = sm90_batches(problem);
  if (!fits_count(tiles, batches)) return false;
  const double all = static_cast<double>(tiles.rows) * tiles.columns * static_cast<double>(batches);
  const double k_blocks = abi::tiles_along(static_cast<unsigned>(sm90_depth(problem)),
                                           static_cast<int>(k_of_stage(problem)));
  const double units = tile.split == abi::SplitMode::stream ? std::max(k_blocks, 1.0) : tile.slices;
  return all * units <= 0x7fffffff;
}

// A cluster runs within one group of multiprocessors, and groups have 14 to 18: on the 132 of an
// H200, 66 clusters of two run at a time, 30 of four, 15 of eight (cuOccupancyMaxActiveClusters,
// 2026-11-22).
int clusters_at_once(const DeviceInfo& device, int cluster_size) {
  const int left_over = cluster_size > 2 ? 12 : 0;
  return std::max((device.multiprocessors - left_over) / cluster_size, 1);
}

bool fits_one_wave(const Sm90TileCounts& tiles, std::uint16_t split_k, const Query& query) {
  const double clusters = static_cast<double>(query.problem.l) * tiles.rows * tiles.columns;
  return clusters <= clusters_at_once(query.device, split_k);
}

bool may_split(const Sm90Extents& extents, const Query& query) {
  constexpr Sm90Tile largest{.m = 256, .n = 256, .cluster_m = 1, .cluster_n = 1, .stages = 0};
  constexpr std::int64_t shortest_k = 512;
  return sm90_depth(query.problem) >= shortest_k &&
         fits_one_wave(count_tiles(extents, largest), 2, query);
}

bool is_worth_parts(const Sm90Extents& extents, const Sm90Tile& tile, const Query& query) {
  const Sm90TileCounts counts = count_tiles(extents, tile);
  const double tiles = static_cast<double>(query.problem.l) * counts.rows * counts.columns;
  const double waves = tiles / clusters_at_once(query.device, tile.cluster_m * tile.cluster_n);
  const std::int64_t least_k = 4 * k_of_stage(query.problem);  // of a slice
  if (tile.split == abi::SplitMode::stream) {
    const double last_wave = waves - std::floor(waves);
    return sm90_depth(query.problem) >= 2 * least_k && waves < 8 && last_wave > 0 &&
           last_wave < 0.5;
  }
  return waves * tile.slices <= 1 && sm90_depth(query.problem) >= tile.slices * least_k;
}

int slices_at_once(const Sm90Extents& extents, const Sm90Tile& tile, const Query& query) {
  constexpr int most_slices = 255;  // of a name
  constexpr int least_blocks = 4;
  const Sm90TileCounts counts = count_tiles(extents, tile);
  const double tiles = static_cast<double>(query.problem.l) * counts.rows * counts.columns;
  const double clusters = clusters_at_once(query.device, tile.split_k);
  const double k_blocks = std::ceil(static_cast<double>(sm90_depth(query.problem)) /
                                    static_cast<double>(k_of_stage(query.problem) * tile.split_k));
  const double most = std::min({clusters / tiles, k_blocks / least_blocks, 1.0 * most_slices});
  if (tiles < 1 || most < 2) return 1;
  // Those that remain after the blocks of k of each are rounded up.
  return static_cast<int>(std::ceil(k_blocks / std::ceil(k_blocks / std::floor(most))));
}

}  // namespace gemmery::templates
