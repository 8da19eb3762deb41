// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/sm90/scales.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include <fmt/format.h>

#include "kernel/rules.hpp"
#include "operation/companions.hpp"
#include "providers/templates/companions.hpp"

namespace gemmery::templates {
namespace {

constexpr std::int32_t k_of_wgmma = 32;
constexpr std::int32_t k_of_scaled_codes = 16;

bool is_mixed(const GemmProblem& problem) noexcept {
  return is_mixed_sm90(problem.a.dtype, problem.b.dtype);
}

// Operands have 8 bits, or 16 beside codes.
std::int32_t k_of_stage(const GemmProblem& problem) noexcept {
  return abi::sm90_swizzle_bytes / (is_mixed(problem) ? 2 : 1);
}

bool is_byte_float(DType dtype) noexcept { return is_floating(dtype) && bit_width(dtype) == 8; }

// The k in a row, from a multiple of it on, that all share their scales.
std::int32_t scaled_k_of(const GemmProblem& problem) noexcept {
  std::int32_t k = k_of_stage(problem);
  for (const OperandCompanions* const companions : {&problem.a_companions, &problem.b_companions}) {
    for (const CompanionType& scale : companions->scales) k = std::gcd(k, scale.block.k);
    if (companions->zero_point) k = std::gcd(k, companions->zero_point->block.k);
  }
  return operation::is_k_ragged(problem.groups) ? std::gcd(k, problem.groups->alignment) : k;
}

// True if a tile's rows (columns of B), as many as that, always have one scale in common. Those of
// groups begin anywhere.
bool is_shared(const GemmProblem& problem, bool is_a, int extent) noexcept {
  const bool is_ragged = operation::are_rows_ragged(problem.groups, is_a);
  const OperandCompanions& companions = is_a ? problem.a_companions : problem.b_companions;
  return std::ranges::all_of(companions.scales, [&](const CompanionType& scale) {
    return scale.layout == ScaleLayout::strided &&
           (is_ragged ? scale.block.rows == 0 : scale.block.rows % extent == 0);
  });
}

// True if a kernel that reads these vectors has every scale of the problem.
bool suffice(abi::ScaleVectors vectors, const Sm90Tile& tile, const OperandRules& rules,
             const GemmProblem& problem) noexcept {
  const bool turned = is_turned(rules, tile);
  if (vectors == abi::ScaleVectors::rows) return is_shared(problem, turned, tile.n);
  if (vectors == abi::ScaleVectors::columns) return is_shared(problem, !turned, tile.m);
  return vectors == abi::ScaleVectors::both;
}

abi::ScaleVectors vectors_of(const Sm90Tile& tile, const OperandRules& rules,
                             const GemmProblem& problem) noexcept {
  using enum abi::ScaleVectors;
  if (is_mixed(problem)) return rows;
  return suffice(rows, tile, rules, problem)      ? rows
         : suffice(columns, tile, rules, problem) ? columns
                                                  : both;
}

void set_scales(const OperandCompanions& types, const BoundCompanions& memory, std::int64_t k,
                abi::CompanionParams (&scales)[2]) {
  const abi::CompanionsParams params = companions_params(types, memory, k);
  std::ranges::copy(params.scales, scales);
}

}  // namespace

namespace {

// Why a kernel that decodes codes does not take their scales and zero points.
std::string find_code_scale_failure(const GemmProblem& problem) {
  const bool is_a = decodes_a_sm90(problem.a.dtype, problem.b.dtype);
  if (!(is_a ? problem.b_companions : problem.a_companions).empty())
    return fmt::format(
        "scales: expected those that vary along k for the operand of codes, {}, got {}",
        is_a ? "A" : "B", is_a ? "scale_b" : "scale_a");
  const OperandCompanions& companions = is_a ? problem.a_companions : problem.b_companions;
  if (companions.table)
    return fmt::format("{}: expected none, got one", operation::table_name(is_a));
  if (companions.order != ElementOrder::strided)
    return "order: expected strided elements, got prepared ones";
  const abi::CompanionTypes types = companion_types(kernel::companion_rules(companions));
  const auto code = static_cast<abi::DType>(is_a ? problem.a.dtype : problem.b.dtype);
  if (!abi::accepts_zero_point(code, types))
    return fmt::format(
        "zero point: expected one of integers of at most 8 bits, with a sign if the codes have "
        "one, "
        "got {} for {}",
        name(companions.zero_point->values.dtype), name(is_a ? problem.a.dtype : problem.b.dtype));
  const std::int32_t least = abi::scale_decoded(code, types) ? k_of_scaled_codes : k_of_wgmma;
  const std::int32_t k = scaled_k_of(problem);
  if (k % least == 0) return {};
  return fmt::format(
      "scales: expected blocks of a multiple of {} along k, got some that agree in {} only", least,
      k);
}

}  // namespace

std::string find_sm90_scale_failure(const GemmProblem& problem) {
  if (!operation::has_companions(problem)) return {};
  if (is_mixed(problem)) return find_code_scale_failure(problem);
  if (!is_byte_float(problem.a.dtype) || !is_byte_float(problem.b.dtype))
    return fmt::format(
        "scales: expected those of blocks along k beside 8-bit floats, got {} and {}",
        name(problem.a.dtype), name(problem.b.dtype));
  if (problem.math == Math::fp8_fast)
    return "math: expected fp8_promoted with scales of blocks along k, got fp8_fast";
  if (problem.a_companions.zero_point || problem.b_companions.zero_point)
    return "zero point: expected none of 8-bit floats, got one";
  if (problem.groups && (problem.groups->are_on_host || problem.groups->have_indices()))
    return "groups: expected sizes in device memory, and elements in their groups' order, beside "
           "scales of blocks along k, got others";
  const std::int32_t k = scaled_k_of(problem);
  if (operation::is_k_ragged(problem.groups) && problem.groups->alignment % k_of_wgmma != 0)
    return fmt::format(
        "groups: expected a multiple of {} as the alignment of groups along k beside "
        "scales of blocks along k, got {}",
        k_of_wgmma, problem.groups->alignment);
  if (k % k_of_wgmma != 0)
    return fmt::format(
        "scales: expected blocks of a multiple of {} along k, got some that agree in "
        "{} only",
        k_of_wgmma, k);
  return {};
}

std::optional<Sm90Candidate> with_scales(const Sm90Candidate& candidate, const OperandRules& rules,
                                         const GemmProblem& problem) {
  Sm90Candidate scaled = candidate;
  scaled.tile.scale_vectors = vectors_of(candidate.tile, rules, problem);
  scaled.tile.scaled_k = static_cast<std::uint8_t>(scaled_k_of(problem));
  const abi::Sm90Design any = sm90_design(rules, scaled.tile);
  scaled.tile.stages = static_cast<std::uint8_t>(abi::most_stages(any));
  const abi::Sm90Design design = sm90_design(rules, scaled.tile);
  if (!abi::is_legal(design)) return std::nullopt;
  scaled.stage_bytes = abi::stage_bytes(design);
  scaled.stage_room = abi::stage_room(design);
  scaled.terms = sm90_terms(design);
  return scaled;
}

Status check_sm90_scales(const Sm90Tile& tile, const OperandRules& rules,
                         const GemmProblem& problem) {
  if (!tile.has_scales()) return Status::success();
  if (std::string failure = find_sm90_scale_failure(problem); !failure.empty())
    return Status::fail(std::move(failure));
  if (scaled_k_of(problem) % tile.scaled_k != 0)
    return Status::fail(fmt::format("scales: expected blocks of a multiple of {} along k, got {}",
                                    tile.scaled_k, scaled_k_of(problem)));
  if (suffice(tile.scale_vectors, tile, rules, problem)) return Status::success();
  const bool has_rows = tile.scale_vectors == abi::ScaleVectors::rows;
  return Status::fail(
      fmt::format("scales: expected one that all {} of a tile of {}x{} share, got "
                  "smaller blocks",
                  has_rows ? "columns" : "rows", tile.m, tile.n));
}

abi::Sm90Scales sm90_scales(const GemmArguments& arguments, bool is_turned) {
  const GemmProblem& problem = arguments.problem();
  abi::Sm90Scales scales{};
  set_scales(problem.a_companions, arguments.a_companions(), problem.k,
             is_turned ? scales.columns : scales.rows);
  set_scales(problem.b_companions, arguments.b_companions(), problem.k,
             is_turned ? scales.rows : scales.columns);
  const bool is_of_a = problem.a_companions.zero_point.has_value();
  if (is_of_a || problem.b_companions.zero_point)
    scales.row_zeros =
        companions_params(is_of_a ? problem.a_companions : problem.b_companions,
                          is_of_a ? arguments.a_companions() : arguments.b_companions(), problem.k)
            .zero_point;
  if (arguments.alpha() != 0) scales.k = static_cast<unsigned>(problem.k);
  return scales;
}

}  // namespace gemmery::templates
