// SPDX-License-Identifier: Apache-2.0
// The public oracle: `verify` and `check_result`, on top of trials and the host's oracle.
#include <gemmery/family.hpp>
#include <gemmery/verify.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gemmery/error.hpp>

#include "api/random_numbers.hpp"
#include "api/trial.hpp"
#include "operation/groups.hpp"
#include "operation/operand_programs.hpp"
#include "operation/scaled_sums.hpp"
#include "platform/float_mode.hpp"
#include "providers/host/oracle.hpp"
#include "providers/host/program_oracle.hpp"

namespace gemmery {
namespace {

std::string describe(const host::Mismatch& mismatch) {
  return fmt::format("{}[{}, {}, {}] is {:.17g}, exactly {:.17g}, allowed error {:.3g}",
                     mismatch.output, mismatch.batch, mismatch.row, mismatch.column, mismatch.got,
                     mismatch.exact, mismatch.allowed);
}

VerifyReport make_report(const host::Comparison& comparison, std::string method) {
  return {.passed = comparison.mismatches == 0,
          .elements = comparison.elements,
          .mismatches = comparison.mismatches,
          .without_bound = comparison.without_bound,
          .open = comparison.without_bound,
          .worst_ratio = comparison.worst_ratio,
          .worst_error = comparison.worst_error,
          .method = std::move(method),
          .first_failure = comparison.first ? describe(*comparison.first) : ""};
}

}  // namespace

namespace api {

host::DeclaredMath declared_math_of(const Kernel& kernel) {
  auto arithmetic = host::Arithmetic::fma;
  bool adds_vector = false;
  for (const DesignField& field : kernel.family().design_fields(kernel)) {
    if (field.name == "instruction" && (field.value == "wgmma" || field.value == "mma"))
      arithmetic = host::Arithmetic::tensor_core;
    if (field.name == "addend" && field.value == "wgmma") adds_vector = true;
  }
  return host::declared_math(kernel.operands(), arithmetic, adds_vector);
}

namespace {

// Checks a sample of a convolution that is too large for the oracle.
VerifyReport judge_sampled(const GemmArguments& arguments, const host::DeclaredMath& declared) {
  constexpr int elements = 4096;
  if (arguments.problem().epilogue != default_epilogue)
    throw Error({.kind = ErrorKind::unsupported,
                 .operand = to_string(arguments.problem()),
                 .expected = "the default epilogue for a convolution of more than 2e11 operations "
                             "or 2^26 results",
                 .got = "another program",
                 .hint = "verify it on fewer images"});
  return make_report(host::compare_sampled_elements(arguments, declared, elements, fresh_seed()),
                     fmt::format("{} random elements by their definition", elements));
}

VerifyReport judge_program(const GemmArguments& arguments, const host::DeclaredMath& declared) {
  if (host::is_within_reach_of_oracle(arguments.problem()))
    return make_report(host::compare_program_with_oracle(arguments, declared), "intervals");
  constexpr int rows = 64;
  const host::RowSample sample =
      host::check_rows_of_program(arguments, declared, rows, fresh_seed());
  const std::string left_out =
      sample.skipped > 0 ? fmt::format(", {} reductions over rows not judged", sample.skipped) : "";
  return make_report(sample.comparison,
                     fmt::format("intervals of {} random rows{}", sample.rows, left_out));
}

}  // namespace

namespace {

// Adds the report of one group to that of all.
void add_group(std::int64_t group, const VerifyReport& one, VerifyReport& all) {
  all.passed = all.passed && one.passed;
  all.elements += one.elements;
  all.mismatches += one.mismatches;
  all.without_bound += one.without_bound;
  all.open = all.without_bound;
  all.worst_ratio = std::max(all.worst_ratio, one.worst_ratio);
  all.worst_error = std::max(all.worst_error, one.worst_error);
  if (all.method.empty()) all.method = one.method + " of each group";
  if (all.first_failure.empty() && !one.first_failure.empty())
    all.first_failure = fmt::format("group {}: {}", group, one.first_failure);
}

// Every group is a GEMM of its own extents, with the bounds of one.
VerifyReport judge_groups(const GemmArguments& arguments, const host::DeclaredMath& declared,
                          bool exact) {
  VerifyReport all;
  all.passed = true;
  const operation::GroupSlicer slice_of(arguments);
  const bool have_indices = arguments.problem().groups->have_indices();
  for (const operation::GroupSlice& slice : operation::read_groups(arguments)) {
    if (!have_indices) {
      add_group(slice.group, judge(slice_of(slice), declared, exact), all);
      continue;
    }
    using operation::IndexedGroup;
    const IndexedGroup indexed(arguments, slice, IndexedGroup::Results::present);
    add_group(slice.group, judge(indexed.gemm(), declared, exact), all);
  }
  if (all.method.empty()) all.method = "no groups";
  return all;
}

[[noreturn]] void refuse_large_programs(const GemmProblem& problem) {
  throw Error({.kind = ErrorKind::unsupported,
               .operand = to_string(problem),
               .expected = "operands without programs where there are more than 2e11 operations or "
                           "2^26 results",
               .got = "a program",
               .hint = "verify it on a smaller problem"});
}

}  // namespace

VerifyReport judge(const GemmArguments& given, const host::DeclaredMath& declared, bool exact) {
  const platform::DefaultFloatMode mode;
  const auto* const scaled = operation::ScaleBinder::scaled_sums(given);
  const GemmArguments& arguments = scaled != nullptr ? *scaled : given;
  if (arguments.group_memory() != nullptr) return judge_groups(arguments, declared, exact);
  const bool is_in_reach = host::is_within_reach_of_oracle(arguments.problem());
  if (!is_in_reach && operation::has_operand_programs(arguments.problem()))
    refuse_large_programs(arguments.problem());
  if (arguments.problem().convolution && !is_in_reach) return judge_sampled(arguments, declared);
  if (arguments.problem().epilogue != default_epilogue) return judge_program(arguments, declared);
  if (!is_in_reach) {
    const host::FreivaldsOptions options{.seed = fresh_seed()};
    return make_report(host::check_by_freivalds(arguments, declared, options),
                       fmt::format("Freivalds ({} vectors)", options.vectors));
  }
  if (exact)
    return make_report(host::compare_with_oracle(arguments, declared, host::Criterion::exact),
                       "exact integers");
  return make_report(host::compare_with_oracle(arguments, declared), "componentwise bound");
}

}  // namespace api

VerifyReport verify(const ProblemLine& line, const Kernel& kernel, const VerifyOptions& options) {
  return api::run_trial({.line = line, .options = options}, kernel);
}

VerifyReport check_result(const GemmArguments& arguments, const Kernel& kernel) {
  return api::judge(arguments, api::declared_math_of(kernel), false);
}

VerifyReport check_result(const GemmArguments& arguments, const OperandRules& declared) {
  return api::judge(arguments, host::declared_math(declared), false);
}

}  // namespace gemmery
