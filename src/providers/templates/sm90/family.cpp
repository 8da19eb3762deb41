// SPDX-License-Identifier: Apache-2.0
// The sm90 family: which kernels serve a query, why others do not, and what they are called.
#include "providers/templates/sm90/family.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernel/forms.hpp"
#include "operation/companions.hpp"
#include "providers/templates/constraints.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/problem_list.hpp"
#include "providers/templates/sm90/constraints.hpp"
#include "providers/templates/sm90/convolution.hpp"
#include "providers/templates/sm90/design.hpp"
#include "providers/templates/sm90/groups.hpp"
#include "providers/templates/sm90/phases.hpp"
#include "providers/templates/sm90/prediction.hpp"
#include "providers/templates/sm90/program.hpp"
#include "providers/templates/sm90/scales.hpp"

namespace gemmery::templates {
namespace {

// No offered tile is smaller in either extent.
constexpr Sm90Tile smallest_tile{.m = 64, .n = 16, .cluster_m = 1, .cluster_n = 1, .stages = 0};

// No offered tile has a larger area.
constexpr Sm90Tile largest_tile{.m = 320, .n = 256, .cluster_m = 1, .cluster_n = 1, .stages = 0};

// Why no design fits although types, layouts and inputs are supported.
std::string find_room_failure(const GemmProblem& problem) {
  for (const OperandRules& rules : FittingLayouts(problem))
    if (!fits_count(count_tiles(extents_of(is_turned(rules), problem), largest_tile),
                    sm90_batches(problem)))
      return too_many("tiles", problem);
  return "epilogue: expected tensors that fit into shared memory beside two stages, got larger "
         "ones";
}

Sm90Form form_for(const GemmProblem& problem) {
  if (problem.convolution) return form_of(problem);
  return kernel::has_pointers(problem) ? Sm90Form::pointers : Sm90Form::strided;
}

// Phases and padded taps have limits of their own.
bool fits_convolution(const GemmProblem& problem, const Sm90Candidate& candidate) {
  return has_phases(*problem.convolution) || has_tap_columns(problem) ? candidate.fits_pixels
                                                                      : candidate.fits_convolutions;
}

// Calls add(candidate) for each design whose tiles of the problem fit the counters, and for each
// split that runs in one wave.
template <class Add>
void walk_candidates(const Query& query, const OperandRules& rules, Add&& add_candidate) {
  const std::int64_t batches = sm90_batches(query.problem);
  const Sm90Extents extents = extents_of(is_turned(rules), query.problem);
  // The listed tiles are those of GEMMs.
  const bool is_convolution = query.problem.convolution.has_value();
  const bool has_scales = operation::has_companions(query.problem);
  const auto add = [&](const Sm90Candidate& candidate) {
    if (is_convolution && !fits_convolution(query.problem, candidate)) return;
    if (!has_scales) return add_candidate(candidate);
    if (const auto scaled = with_scales(candidate, rules, query.problem)) add_candidate(*scaled);
  };
  const bool fits_all = fits_count(count_tiles(extents, smallest_tile), batches);
  const auto add_fitting = [&](std::span<const Sm90Candidate> candidates) {
    for (const Sm90Candidate& candidate : candidates)
      if (fits_all || fits_count(count_tiles(extents, candidate.tile), batches)) add(candidate);
  };
  add_fitting(sm90_candidates(rules));
  if (query.problem.epilogue != default_epilogue) add_fitting(sm90_program_candidates(rules));
  for (const Sm90Candidate& candidate : sm90_part_candidates(rules))
    if (is_worth_parts(extents, candidate.tile, query)) add(candidate);
  if (!may_split(extents, query)) return;
  for (Sm90Candidate candidate : sm90_slice_candidates(rules)) {
    candidate.tile.slices =
        static_cast<std::uint8_t>(slices_at_once(extents, candidate.tile, query));
    const auto parts = sm90_part_tiles(rules);
    const bool is_listed = std::ranges::find(parts, candidate.tile) != parts.end();
    if (candidate.tile.slices > 1 && !is_listed) add(candidate);
  }
  for (const Sm90Candidate& candidate : sm90_split_candidates(rules)) {
    const Sm90TileCounts counts = count_tiles(extents, candidate.tile);
    if (fits_one_wave(counts, candidate.tile.split_k, query)) add(candidate);
  }
}

void match_default(const Family& family, const Query& query, const OperandRules& rules,
                   std::vector<RankedKernel>& kernels) {
  const Sm90Prediction prediction(query.problem, rules, query.device);
  const Sm90Form form = form_for(query.problem);
  kernels.reserve(kernels.size() + sm90_candidates(rules).size());
  walk_candidates(query, rules, [&](const Sm90Candidate& candidate) {
    Sm90Tile tile = candidate.tile;
    tile.form = form;
    kernels.emplace_back(Kernel(family, rules, DesignBytes::of(tile), default_epilogue),
                         prediction.microseconds(candidate));
  });
}

// Adds the kernels with a register operand of 8 bits, which may transpose the product.
void match_registers(const Family& family, const Query& query, const OperandRules& rules,
                     std::vector<RankedKernel>& kernels) {
  if (query.problem.convolution) return;
  const auto candidates = sm90_register_candidates(rules);
  if (candidates.empty() || !can_store(rules, candidates.front().tile)) return;
  const bool turned = is_turned(rules, candidates.front().tile);
  const Sm90Prediction prediction(query.problem, rules, query.device, turned);
  const Sm90Extents extents = extents_of(turned, query.problem);
  const Sm90Form form = form_for(query.problem);
  const auto add = [&](const Sm90Candidate& candidate) {
    Sm90Tile tile = candidate.tile;
    tile.form = form;
    kernels.emplace_back(Kernel(family, rules, DesignBytes::of(tile), default_epilogue),
                         prediction.microseconds(candidate));
  };
  const bool has_scales = operation::has_companions(query.problem);
  for (const Sm90Candidate& candidate : candidates) {
    if (!fits_count(count_tiles(extents, candidate.tile), query.problem.l)) continue;
    if (!has_scales)
      add(candidate);
    else if (const auto scaled = with_scales(candidate, rules, query.problem))
      add(*scaled);
  }
}

void match_program(const Family& family, const Query& query, const OperandRules& rules,
                   std::vector<RankedKernel>& kernels) {
  const GemmProblem& problem = query.problem;
  const Sm90Prediction prediction(problem, rules, query.device);
  const ProgramFit fit(problem, rules);
  const Sm90Form form = form_for(problem);
  kernels.reserve(kernels.size() + sm90_candidates(rules).size());
  walk_candidates(query, rules, [&](const Sm90Candidate& candidate) {
    if (!candidate.has_room_for_programs) return;
    const int stages = fit.stages(candidate);
    if (stages == 0) return;
    Sm90Tile tile = candidate.tile;
    tile.stages = static_cast<std::uint8_t>(stages);
    tile.form = form;
    kernels.emplace_back(Kernel(family, rules, DesignBytes::of(tile), problem.epilogue),
                         prediction.microseconds(candidate, stages));
  });
}

ConvKind kind_of(const abi::Sm90Design& design) {
  switch (design.conv) {
    case abi::Sm90Conv::fprop:
      return ConvKind::fprop;
    case abi::Sm90Conv::dgrad:
      return ConvKind::dgrad;
    default:
      return ConvKind::wgrad;
  }
}

// Success if the kernel is for the problem's convolution (kind and dimensions), or both have none.
Status check_sm90_form(const Sm90Tile& tile, const GemmProblem& problem) {
  if (!problem.convolution)
    return tile.is_convolution() ? Status::fail("operation: expected a convolution, got a GEMM")
                                 : Status::success();
  const Sm90Form form = form_of(problem);
  if (tile.form == form) return Status::success();
  return Status::fail(fmt::format("operation: expected {}, got {}", operation_text(tile.form),
                                  operation_text(form)));
}

}  // namespace

Sm90Family::Sm90Family()
    : TemplateFamily({.name = "sm90", .version = sm90_version, .targets = sm90_targets}) {}

bool Sm90Family::takes_groups(const Groups& groups) const noexcept {
  return divides_tensors(groups) || is_list(groups);
}

bool Sm90Family::takes_indices(const Groups& groups) const noexcept {
  return groups.have_indices() && !groups.are_on_host;
}

bool Sm90Family::takes_convolution(const Convolution&) const noexcept { return true; }

bool Sm90Family::takes_companions(const GemmProblem&) const noexcept { return true; }

// Kernels tell which reductions of blocks they have.
Status Sm90Family::carries(const GemmProblem& problem) const {
  return check_something_reduced(problem);
}

// --- discovery ----------------------------------------------------------------------------------

void Sm90Family::match(const Query& query, std::vector<RankedKernel>& kernels) const {
  if (!find_sm90_type_failure(query).empty()) return;
  if (query.problem.groups) return match_sm90_groups(*this, query, kernels);
  const auto match_rules =
      query.problem.epilogue == default_epilogue ? match_default : match_program;
  for (const OperandRules& rules : FittingLayouts(query.problem)) {
    match_rules(*this, query, rules, kernels);
    if (query.problem.epilogue == default_epilogue) match_registers(*this, query, rules, kernels);
  }
}

Status Sm90Family::supports(const Kernel& kernel, const Query& query) const {
  const GemmProblem& problem = query.problem;
  if (Status status = check_something_reduced(problem); !status) return status;
  const OperandRules& rules = kernel.operands();
  const Sm90Tile tile = sm90_tile(kernel);
  if (Status status = check_sm90_groups(tile, rules, problem); !status) return status;
  if (Status status = check_sm90_form(tile, problem); !status) return status;
  if (Status status = check_sm90_scales(tile, rules, problem); !status) return status;
  std::string misfit = find_misfit(rules, problem);
  if (!misfit.empty()) return Status::fail(std::move(misfit));
  if (!tile.has_pointers() && !tile.has_list()) {
    if (Status status = kernel::refuse_pointers(problem); !status) return status;
  }
  const int staging_columns = abi::staging_columns(sm90_design(kernel));
  if (Status status = check_sm90_blocks(problem.epilogue, is_turned(rules, tile), staging_columns);
      !status)
    return status;
  misfit = find_misfit(list_tma_inputs(problem, rules, sm90_design(kernel),
                                       program_tensors(problem.epilogue, is_turned(rules, tile))),
                       problem.epilogue);
  if (!misfit.empty()) return Status::fail(std::move(misfit));
  if (!tile.has_groups() &&
      !fits_count(extents_of(is_turned(rules, tile), problem), tile, problem)) {
    return Status::fail(too_many(fmt::format("tiles of {}x{}", tile.m, tile.n), problem));
  }
  return Status::success();
}

void Sm90Family::explain(const Query& query, std::vector<Reason>& reasons) const {
  const bool has_groups = query.problem.groups.has_value();
  Reason reason = reason_of(has_groups ? find_sm90_group_failure(query) : find_sm90_failure(query));
  std::vector<RankedKernel> kernels;
  if (reason.failed.empty()) match(query, kernels);
  reason.fitting = static_cast<int>(kernels.size());
  if (reason.failed.empty() && kernels.empty() && has_groups)
    reason.failed = find_sm90_group_misfit(query.problem);
  if (reason.failed.empty() && kernels.empty()) reason.failed = find_program_failure(query.problem);
  if (reason.failed.empty() && kernels.empty()) reason.failed = find_room_failure(query.problem);
  reasons.push_back(std::move(reason));
}

void Sm90Family::enumerate(const std::function<void(const Kernel&)>& visit) const {
  const auto add_layouts = [&](const Sm90Products& products, DType out, std::optional<DType> c) {
    for (const OperandRules& rules : sm90_layouts(products, out, c)) {
      for (const auto tiles : {sm90_tiles(rules), sm90_split_tiles(rules), sm90_part_tiles(rules),
                               sm90_slice_tiles(rules), sm90_register_tiles(rules)}) {
        for (const Sm90Tile& tile : tiles) visit(Kernel(*this, rules, DesignBytes::of(tile)));
      }
      // For convolutions, only the tiles that most often rank first.
      for (Sm90Tile tile : sm90_tiles(rules)) {
        if (tile.m % 128 != 0 || tile.n % 64 != 0) continue;
        for (const Sm90Form form : sm90_conv_forms) {
          tile.form = form;
          if (is_legal(rules, tile)) visit(Kernel(*this, rules, DesignBytes::of(tile)));
        }
      }
      for (Sm90Tile tile : sm90_group_tiles(rules)) {
        for (const Sm90Form form : sm90_group_forms) {
          tile.form = form;
          const OperandRules own = tile.has_list() ? listed_rules(rules) : rules;
          if (is_legal(own, tile)) visit(Kernel(*this, own, DesignBytes::of(tile)));
        }
      }
    }
  };
  for (const Sm90Products& products : sm90_products()) {
    const bool is_mixed = is_mixed_sm90(products.a, products.b);
    // Integers beside floats have a scale, with which a kernel is another one.
    if (is_mixed && (is_integer(products.a) || is_integer(products.b))) continue;
    for (const DType out : sm90_outputs(products.a, products.b)) {
      add_layouts(products, out, std::nullopt);
      // Beside codes, only the C that problems most often have.
      for (const DType c : sm90_addends(products.a, products.b))
        if (!is_mixed || c == out) add_layouts(products, out, c);
    }
  }
}

// --- metadata -----------------------------------------------------------------------------------

std::string Sm90Family::kernel_name(const Kernel& kernel) const { return sm90_name(kernel); }

std::optional<Kernel> Sm90Family::read_name(std::string_view text) const {
  const auto parts = parse_sm90_name(text);
  if (!parts) return std::nullopt;
  return Kernel(*this, parts->rules, DesignBytes::of(parts->tile), parts->epilogue);
}

std::vector<DesignField> Sm90Family::design_fields(const Kernel& kernel) const {
  const Sm90Tile tile = sm90_tile(kernel);
  std::vector<DesignField> fields{
      {"instruction", "wgmma"},
      {"tile", tile_text(kernel.operands(), tile)},
      {"cluster", fmt::format("{}x{}", tile.cluster_m, tile.cluster_n)},
      {"threads", std::to_string(abi::thread_count(sm90_design(kernel)))},
      {"split_k", split_text(tile)},
      {"stages", std::to_string(tile.stages)},
      {"schedule", schedule_text(tile)},
      {"raster", raster_text(tile.raster)}};
  if (tile.adds_vector) fields.push_back({"addend", "wgmma"});
  if (std::string repacked = repacked_text(kernel.operands()); !repacked.empty())
    fields.push_back({"repacked", std::move(repacked)});
  if (std::string operand = register_text(kernel.operands(), tile); !operand.empty())
    fields.push_back({is_mixed_sm90(kernel.operands().a.dtype, kernel.operands().b.dtype)
                          ? "decoded"
                          : "through_registers",
                      std::move(operand)});
  if (tile.is_convolution()) {
    const abi::Sm90Design design = sm90_design(kernel);
    fields.push_back({"convolution", std::string(gemmery::name(kind_of(design)))});
    fields.push_back({"dimensions", std::to_string(design.dimensions)});
    if (design.has_phases) fields.push_back({"stride", "by phases"});
    if (design.has_tap_columns) fields.push_back({"taps", "padded"});
  }
  if (tile.has_scales()) fields.push_back({"scales", scale_text(tile)});
  if (tile.has_pointers()) fields.push_back({"batches", "pointers"});
  if (tile.has_groups())
    fields.push_back({"groups", tile.has_list()          ? "a list of the host"
                                : tile.has_group_table() ? "in a table of the host"
                                                         : "found on the device"});
  if (tile.clears_outside()) fields.push_back({"outside", "zero"});
  if (tile.scatters_rows() || tile.gathers_rows()) {
    fields.push_back({"indices", is_turned(kernel) ? "columns" : "rows"});
    fields.push_back({"indexed", !tile.gathers_rows()   ? "out"
                                 : tile.scatters_rows() ? "operand, out"
                                                        : "operand"});
  }
  return fields;
}

}  // namespace gemmery::templates
