// SPDX-License-Identifier: Apache-2.0
// The forms of problems that a family as a whole takes or does not take.
#pragma once

#include <gemmery/family.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/status.hpp>

namespace gemmery::kernel {

// True if an operand is a batch by pointers.
bool has_pointers(const GemmProblem& problem) noexcept;

// Fails if an operand is a batch by pointers, and names it.
Status refuse_pointers(const GemmProblem& problem);

// Checks whether a family takes the problem's form, and then its epilogue.
Status check_form(const Family& family, const GemmProblem& problem);

// The check of the form only, without a reason: the quick form.
bool serves_form(const Family& family, const GemmProblem& problem) noexcept;

}  // namespace gemmery::kernel
