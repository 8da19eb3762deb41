// SPDX-License-Identifier: Apache-2.0
// Convolutions, groups, scales and batches by pointers, and the families that take them.
#include "kernel/forms.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "kernel/operand_programs.hpp"
#include "operation/companions.hpp"
#include "operation/operand_programs.hpp"

namespace gemmery::kernel {
namespace {

// The name of an operand that is a batch by pointers; empty if there is none.
std::string find_pointers(const GemmProblem& problem) {
  if (problem.a.has_pointers()) return "A";
  if (problem.b.has_pointers()) return "B";
  if (problem.c && problem.c->has_pointers()) return "C";
  if (problem.out.has_pointers()) return "out";
  for (std::size_t i = 0; i < problem.epilogue_operands.size(); ++i)
    if (problem.epilogue_operands[i].has_pointers())
      return "epilogue operand " + rules_of(problem.epilogue).operands[i].name;
  return {};
}

std::string pointer_refusal(const GemmProblem& problem) {
  return find_pointers(problem) + ": expected matrices one batch stride apart, got pointers";
}

std::string refuse_groups(const GemmProblem& problem) {
  const Groups& groups = *problem.groups;
  return "groups: expected one GEMM, or groups in a form that this family takes, got groups by " +
         std::string(name(groups.sizes)) + (groups.are_on_host ? " on the host" : "") +
         (groups.outside == OutsideGroups::zero ? ", with zeros outside of groups" : "");
}

std::string refuse_indices(const GemmProblem& problem) {
  const Groups& groups = *problem.groups;
  const std::string_view given = !groups.scatter.are_used()  ? "a gather"
                                 : !groups.gather.are_used() ? "a scatter"
                                                             : "a gather and a scatter";
  return "groups: expected elements in their groups' order, or indices that this family takes, "
         "got " +
         std::string(given) + " by indices";
}

std::string refuse_convolution(const GemmProblem& problem) {
  const Convolution& convolution = *problem.convolution;
  return "operation: expected a GEMM, or a convolution that this family takes, got conv" +
         std::to_string(convolution.dimensions) + "d_" + std::string(name(convolution.kind)) +
         (convolution.groups > 1 ? " with groups" : "");
}

std::string companion_text(const OperandCompanions& companions, bool is_a) {
  std::string text;
  for (std::size_t i = 0; i < companions.scales.size(); ++i) {
    const CompanionType& scale = companions.scales[i];
    text += (text.empty() ? "" : ", ") + operation::scale_name(is_a, i) + " of " +
            std::string(name(scale.values.dtype)) + " for blocks of " + to_string(scale.block) +
            (scale.layout == ScaleLayout::strided ? "" : ", swizzled");
  }
  if (companions.zero_point)
    text += (text.empty() ? "" : ", ") + std::string(operation::zero_point_name(is_a));
  if (companions.table)
    text += (text.empty() ? "" : ", ") + std::string(operation::table_name(is_a));
  if (companions.order != ElementOrder::strided)
    text += (text.empty() ? "" : ", ") + std::string("elements in the order of fragments");
  if (companions.program) text += (text.empty() ? "" : ", ") + std::string("a program");
  return text;
}

std::string refuse_companions(const GemmProblem& problem) {
  const bool is_a = !problem.a_companions.empty();
  return std::string(is_a ? "A" : "B") +
         ": expected elements without a zero point, a code table or scales that vary along k, or "
         "those that this family takes, got " +
         companion_text(is_a ? problem.a_companions : problem.b_companions, is_a);
}

// A form, and the families that take it. By default a family takes none.
struct FormRow {
  bool (*is_of)(const GemmProblem&) noexcept;
  bool (*is_taken)(const Family&, const GemmProblem&) noexcept;
  std::string (*refusal)(const GemmProblem&);
};

bool has_groups(const GemmProblem& problem) noexcept { return problem.groups.has_value(); }
bool takes_pointers(const Family& family, const GemmProblem&) noexcept {
  return family.takes_pointers();
}
bool takes_groups(const Family& family, const GemmProblem& problem) noexcept {
  return family.takes_groups(*problem.groups);
}
bool has_indices(const GemmProblem& problem) noexcept {
  return problem.groups.has_value() && problem.groups->have_indices();
}
bool takes_indices(const Family& family, const GemmProblem& problem) noexcept {
  return family.takes_indices(*problem.groups);
}

bool has_convolution(const GemmProblem& problem) noexcept {
  return problem.convolution.has_value();
}
bool takes_convolution(const Family& family, const GemmProblem& problem) noexcept {
  return family.takes_convolution(*problem.convolution);
}

bool takes_companions(const Family& family, const GemmProblem& problem) noexcept {
  return family.takes_companions(problem);
}

bool is_prepared(const GemmProblem& problem) noexcept {
  return problem.a_companions.order != ElementOrder::strided ||
         problem.b_companions.order != ElementOrder::strided;
}
bool takes_prepared(const Family& family, const GemmProblem& problem) noexcept {
  return family.takes_prepared(problem);
}
std::string refuse_prepared(const GemmProblem& problem) {
  const bool is_a = problem.a_companions.order != ElementOrder::strided;
  return std::string(is_a ? "A" : "B") +
         ": expected elements in the order of their strides, got elements that are prepared for "
         "another kernel";
}

bool takes_programs(const Family& family, const GemmProblem& problem) noexcept {
  return family.takes_operand_programs(problem);
}

constexpr std::array<FormRow, 7> forms{{
    {has_convolution, takes_convolution, refuse_convolution},
    {has_groups, takes_groups, refuse_groups},
    {has_indices, takes_indices, refuse_indices},
    {is_prepared, takes_prepared, refuse_prepared},
    {operation::has_operand_programs, takes_programs, refuse_programs},
    {operation::has_companions, takes_companions, refuse_companions},
    {kernel::has_pointers, takes_pointers, pointer_refusal},
}};

}  // namespace

bool has_pointers(const GemmProblem& problem) noexcept {
  return problem.a.has_pointers() || problem.b.has_pointers() || problem.out.has_pointers() ||
         (problem.c && problem.c->has_pointers()) ||
         std::ranges::any_of(problem.epilogue_operands, &MatrixType::has_pointers);
}

bool serves_form(const Family& family, const GemmProblem& problem) noexcept {
  return std::ranges::all_of(forms, [&](const FormRow& form) {
    return !form.is_of(problem) || form.is_taken(family, problem);
  });
}

Status refuse_pointers(const GemmProblem& problem) {
  if (!has_pointers(problem)) return Status::success();
  return Status::fail(pointer_refusal(problem));
}

Status check_form(const Family& family, const GemmProblem& problem) {
  for (const FormRow& form : forms)
    if (form.is_of(problem) && !form.is_taken(family, problem))
      return Status::fail(form.refusal(problem));
  return family.carries(problem);
}

}  // namespace gemmery::kernel
