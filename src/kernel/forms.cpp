// SPDX-License-Identifier: Apache-2.0
// Batches by pointers, and the families that take them.
#include "kernel/forms.hpp"

#include <algorithm>
#include <string>

namespace gemmery::kernel {
namespace {

// The operand of that form, by its name; empty where none is.
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

}  // namespace

bool has_pointers(const GemmProblem& problem) noexcept {
  return problem.a.has_pointers() || problem.b.has_pointers() || problem.out.has_pointers() ||
         (problem.c && problem.c->has_pointers()) ||
         std::ranges::any_of(problem.epilogue_operands, &MatrixType::has_pointers);
}

bool serves_form(const Family& family, const GemmProblem& problem) noexcept {
  return family.takes_pointers() || !has_pointers(problem);
}

Status check_form(const Family& family, const GemmProblem& problem) {
  if (!serves_form(family, problem))
    return Status::fail(find_pointers(problem) +
                        ": expected matrices one batch stride apart, got pointers");
  return family.carries(problem);
}

}  // namespace gemmery::kernel
