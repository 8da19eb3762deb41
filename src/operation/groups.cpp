// SPDX-License-Identifier: Apache-2.0
// Names of forms, extents of grouped tensors, and the rules of their epilogues.
#include "operation/groups.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>

#include "operation/block_results.hpp"
#include "operation/epilogue_operands.hpp"
#include "operation/names.hpp"
#include "operation/overlap.hpp"
#include "operation/refusal.hpp"
#include "operation/types.hpp"

namespace gemmery {
namespace {

constexpr std::array<std::string_view, 6> size_names{"ends",   "prefix", "counts",
                                                     "labels", "masked", "list"};
constexpr std::array<std::string_view, 3> ragged_names{"m", "n", "k"};
constexpr std::array<std::string_view, 2> outside_names{"untouched", "zero"};

}  // namespace

std::string_view name(GroupSizes sizes) noexcept {
  return size_names[static_cast<std::size_t>(sizes)];
}
std::optional<GroupSizes> parse_group_sizes(std::string_view word) noexcept {
  return operation::find_name<GroupSizes>(size_names, word);
}
std::string_view name(Ragged ragged) noexcept {
  return ragged_names[static_cast<std::size_t>(ragged)];
}
std::optional<Ragged> parse_ragged(std::string_view word) noexcept {
  return operation::find_name<Ragged>(ragged_names, word);
}
std::string_view name(OutsideGroups outside) noexcept {
  return outside_names[static_cast<std::size_t>(outside)];
}
std::optional<OutsideGroups> parse_outside_groups(std::string_view word) noexcept {
  return operation::find_name<OutsideGroups>(outside_names, word);
}

}  // namespace gemmery

namespace gemmery::operation {

// --- extents ------------------------------------------------------------------------------------

ProductExtents product_extents(const GemmProblem& problem) noexcept {
  const auto& [m, n, k, l] = std::tie(problem.m, problem.n, problem.k, problem.l);
  ProductExtents extents{.a = {l, m, k}, .b = {l, k, n}, .out = {l, m, n}};
  if (!problem.groups || !problem.groups->share_tensors()) return extents;
  const Ragged ragged = problem.groups->ragged;
  if (ragged != Ragged::n) extents.a.batch = 1;
  if (ragged != Ragged::m) extents.b.batch = 1;
  if (ragged != Ragged::k) extents.out.batch = 1;
  const auto& [gather, scatter] = std::tie(problem.groups->gather, problem.groups->scatter);
  if (gather.are_used()) (ragged == Ragged::m ? extents.a.rows : extents.b.columns) = gather.extent;
  if (scatter.are_used())
    (ragged == Ragged::m ? extents.out.rows : extents.out.columns) = scatter.extent;
  return extents;
}

bool is_out_shared(const GemmProblem& problem) noexcept {
  return problem.groups && problem.groups->share_tensors() && problem.groups->ragged != Ragged::k;
}

MatrixExtents addend_extents(const GemmProblem& problem, const MatrixType& matrix) noexcept {
  const bool is_once = is_out_shared(problem) && matrix.batch_stride == 0;
  const MatrixExtents out = product_extents(problem).out;
  return {is_once ? 1 : problem.l, out.rows, out.columns};
}

std::optional<Ragged> ragged_of_out(const GemmProblem& problem) noexcept {
  const bool is_in_out = problem.groups && problem.groups->sizes != GroupSizes::list &&
                         problem.groups->ragged != Ragged::k;
  return is_in_out ? std::optional(problem.groups->ragged) : std::nullopt;
}

std::int64_t ragged_extent(const GemmProblem& problem) noexcept {
  if (problem.groups->ragged == Ragged::m) return problem.m;
  return problem.groups->ragged == Ragged::n ? problem.n : problem.k;
}

std::int64_t size_count(const Groups& groups, std::int64_t group_count,
                        std::int64_t ragged_extent) noexcept {
  switch (groups.sizes) {
    case GroupSizes::prefix:
      return group_count + 1;
    case GroupSizes::labels:
      return ragged_extent;
    case GroupSizes::list:
      return 0;
    default:
      return group_count;
  }
}

void check_group_memory(const GroupIndices& sizes, std::string_view operand) {
  if (sizes.count == 0) return;
  const std::string name(operand);
  if (sizes.data == nullptr)
    refuse(name, "memory for " + std::to_string(sizes.count) + " " + name, "a null pointer");
  const auto width = static_cast<std::uintptr_t>(sizes.bits / 8);
  const auto rest = reinterpret_cast<std::uintptr_t>(sizes.data) % width;
  if (rest == 0) return;
  refuse(name, "an address that is a multiple of their " + std::to_string(width) + "-byte elements",
         "an address that is " + std::to_string(rest) + " bytes off");
}

void check_sizes_apart(const GroupIndices& sizes, const Tensor& out, std::string_view operand) {
  if (sizes.count == 0 || sizes.device != out.device()) return;
  const Tensor words(sizes.data, DType::int32, {sizes.count * (sizes.bits / 32)}, sizes.device);
  if (may_overlap(out, words))
    refuse("out", "memory that shares nothing with " + std::string(operand), "overlapping memory",
           "write to another tensor");
}

// --- rules --------------------------------------------------------------------------------------

namespace {

void check_promises(const Groups& groups) {
  if (groups.alignment < 1)
    refuse("alignment of groups", "1 or more", std::to_string(groups.alignment));
  if (groups.alignment != 1 && !groups.share_tensors())
    refuse("alignment of groups", "1, since every group begins at the start of its own matrix",
           std::to_string(groups.alignment));
  if (groups.expected < 0)
    refuse("expected size of groups", "0 (not known) or more", std::to_string(groups.expected));
  if (groups.sizes == GroupSizes::labels && groups.ragged == Ragged::k)
    refuse("labels", "ends, prefix or counts where K differs", "labels",
           "sort by label: one group is one sum over adjacent k", ErrorKind::unsupported);
  if (groups.sizes == GroupSizes::list && groups.outside != OutsideGroups::untouched)
    refuse("outside", "untouched: nothing of a list is of no problem", "zero");
}

void check_indexed(std::string_view operand, const Groups& groups, const IndexedElements& indexed) {
  if (!indexed.are_used()) return;
  const std::string name(operand);
  if (!groups.share_tensors() || groups.ragged == Ragged::k)
    refuse(name, "groups of M or N that share a tensor",
           groups.ragged == Ragged::k ? "groups of K"
                                      : std::string(gemmery::name(groups.sizes)) + " groups",
           "", ErrorKind::unsupported);
  if (indexed.divide < 1) refuse("divide of " + name, "1 or more", std::to_string(indexed.divide));
}

}  // namespace

void check_indexable(const Groups& groups) {
  check_indexed("gather", groups, groups.gather);
  check_indexed("scatter", groups, groups.scatter);
  if (groups.scatter.are_used() && groups.outside == OutsideGroups::zero)
    refuse("outside", "untouched beside a scatter", "zero", "fill out with zeros before",
           ErrorKind::unsupported);
}

namespace {

bool varies_with_group(const EpilogueOperandRule& rule, const MatrixType& matrix) {
  return rule.varies_l && matrix.batch_stride != 0;
}

bool varies_with_ragged(const EpilogueOperandRule& rule, Ragged ragged) {
  return ragged == Ragged::m ? rule.varies_m : rule.varies_n;
}

std::string label_of(const EpilogueOperandRule& rule) { return "epilogue operand " + rule.name; }

void check_shared_operand(const GemmProblem& problem, const EpilogueOperandRule& rule,
                          const MatrixType& matrix) {
  const Ragged ragged = problem.groups->ragged;
  if (!varies_with_group(rule, matrix) || !varies_with_ragged(rule, ragged)) return;
  refuse(label_of(rule),
         ragged == Ragged::m ? "(G, 1, N) or (G, 1, 1) for groups, or (T, N) or (T, 1) for rows"
                             : "(G, M, 1) or (G, 1, 1) for groups, or (M, T) or (T,) for columns",
         "values for every group and every " + std::string(ragged == Ragged::m ? "row" : "column"),
         "each row or column is of one group");
}

// A reduction must stay within one group.
void check_reduction(const GemmProblem& problem, const EpilogueOperandRule& rule,
                     const MatrixType& matrix) {
  if (problem.l <= 1) return;
  const bool is_of_group = matrix.batch_stride != 0;
  const bool is_of_line =
      is_out_shared(problem) && varies_with_ragged(rule, problem.groups->ragged);
  if (!is_of_group && !is_of_line)
    refuse(label_of(rule), "a result for every group, (G, 1, N), (G, M, 1) or (G, 1, 1)",
           "one reduction over several groups", "reduce the results of the groups afterwards",
           ErrorKind::unsupported);
  if (is_of_group && problem.groups->sizes == GroupSizes::labels)
    refuse(label_of(rule), "groups by ends, prefix or counts, which are adjacent",
           "a reduction per group with labels", "", ErrorKind::unsupported);
}

void check_addend(const GemmProblem& problem) {
  if (!problem.c || !is_out_shared(problem) || problem.c->batch_stride == 0) return;
  const EpilogueOperandRule as_rule{.name = "C",
                                    .varies_l = true,
                                    .varies_m = problem.c->row_stride != 0,
                                    .varies_n = problem.c->column_stride != 0};
  check_shared_operand(problem, as_rule, *problem.c);
}

}  // namespace

void check_groups(const GemmProblem& problem) {
  check_promises(*problem.groups);
  check_indexable(*problem.groups);
  check_addend(problem);
  check_packed_operands(problem);
  if (problem.epilogue == default_epilogue) return;
  if (problem.groups->sizes == GroupSizes::list)
    refuse("epilogue", "the default program in a list of problems",
           "\"" + std::string(text(problem.epilogue)) + "\"",
           "give each problem its C, alpha and beta, or let groups share tensors",
           ErrorKind::unsupported);
  const EpilogueRules& rules = rules_of(problem.epilogue);
  for (std::size_t i = 0; i < rules.operands.size(); ++i) {
    const EpilogueOperandRule& rule = rules.operands[i];
    if (rule.is_number) continue;
    const MatrixType& matrix = problem.epilogue_operands[i];
    if (rule.is_output && reduction_of(rules.program, rule.name) != epilogue::Reduction::none)
      check_reduction(problem, rule, matrix);
    if (is_out_shared(problem)) check_shared_operand(problem, rule, matrix);
    check_cleared_blocks(rule, *problem.groups);
  }
}

}  // namespace gemmery::operation
