// SPDX-License-Identifier: Apache-2.0
#include "providers/templates/sm80/scales.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "core/number.hpp"
#include "device/abi/sm80_faults.hpp"
#include "kernel/rules.hpp"
#include "operation/companions.hpp"
#include "providers/templates/companions.hpp"
#include "providers/templates/sm80/design.hpp"

namespace gemmery::templates {
namespace {

// A kernel changes scales between two steps of its mainloop; scales that multiply codes, between
// the codes of lanes.
constexpr std::int32_t k_of_step = 32;
constexpr std::int32_t k_of_lane = 8;

bool decodes_a(const GemmProblem& problem) noexcept {
  return abi::is_code(static_cast<abi::DType>(problem.a.dtype));
}

std::vector<const CompanionType*> all_of(const OperandCompanions& companions) {
  std::vector<const CompanionType*> all;
  for (const CompanionType& scale : companions.scales) all.push_back(&scale);
  if (companions.zero_point) all.push_back(&*companions.zero_point);
  return all;
}

// The types of a kernel with the problem's scales.
OperandRules rules_of(const GemmProblem& problem) {
  return {.a = {.dtype = problem.a.dtype, .layout = LayoutRule::row},
          .b = {.dtype = problem.b.dtype, .layout = LayoutRule::column},
          .c = {},
          .out = {.dtype = problem.out.dtype},
          .accumulator = problem.accumulator,
          .math = problem.math,
          .a_companions = kernel::companion_rules(problem.a_companions),
          .b_companions = kernel::companion_rules(problem.b_companions)};
}

// True if a 16-bit type has all numbers of a table. Tensor cores align a subnormal factor like the
// smallest normal number.
bool is_exact(const CodeTable& table, DType dtype) {
  const double least = number::rounding_of(dtype).smallest / number::rounding_of(dtype).unit / 2;
  return rounded(table, dtype) == table && std::ranges::all_of(table.values, [&](float value) {
           return value == 0 || std::fabs(static_cast<double>(value)) >= least;
         });
}

}  // namespace

std::string find_sm80_scale_failure(const GemmProblem& problem) {
  if (!operation::has_companions(problem)) return {};
  const bool is_a = decodes_a(problem);
  if (!(is_a ? problem.b_companions : problem.a_companions).empty())
    return fmt::format(
        "scales: expected those that vary along k for the operand of codes, {}, got {}",
        is_a ? "A" : "B", is_a ? "scale_b" : "scale_a");
  const OperandCompanions& companions = is_a ? problem.a_companions : problem.b_companions;
  const Sm80Tile smallest{.m = 16, .n = 128, .k = 64, .warps_m = 1, .warps_n = 4};
  const abi::Sm80Design design = sm80_design(rules_of(problem), smallest);
  const std::int32_t least = abi::scales_codes(design) ? k_of_lane : k_of_step;
  for (const CompanionType* const companion : all_of(companions))
    if (companion->block.k % least != 0)
      return fmt::format("scales: expected blocks of a multiple of {} along k, got {}", least,
                         to_string(companion->block));
  if (companions.table && !is_exact(*companions.table, is_a ? problem.b.dtype : problem.a.dtype))
    return fmt::format(
        "{}: expected numbers that {} has, neither subnormal nor others, got {}; round them first",
        operation::table_name(is_a), name(is_a ? problem.b.dtype : problem.a.dtype),
        to_string(*companions.table));
  if (abi::detail::accepts_scales(design)) return {};
  return fmt::format(
      "zero point: expected one of integers of at most 8 bits, with a sign if the codes have one, "
      "got {} for {}",
      companions.zero_point ? name(companions.zero_point->values.dtype) : "none",
      name(is_a ? problem.a.dtype : problem.b.dtype));
}

abi::GroupedCompanionsParams sm80_scale_params(const GemmArguments& arguments,
                                               const OperandRules& rules) {
  const GemmProblem& problem = arguments.problem();
  const bool is_a = abi::is_code(static_cast<abi::DType>(rules.a.dtype));
  const OperandCompanions& types = is_a ? problem.a_companions : problem.b_companions;
  const BoundCompanions& memory = is_a ? arguments.a_companions() : arguments.b_companions();
  std::int32_t group = 0;
  for (const CompanionType* const companion : all_of(types))
    group = std::gcd(group, companion->block.k);
  return {.companions = companions_params(types, memory, problem.k), .group = block_divisor(group)};
}

}  // namespace gemmery::templates
