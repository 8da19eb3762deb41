// SPDX-License-Identifier: Apache-2.0
// The forms of a problem that a family may or may not serve, whichever kernel it is.
#pragma once

#include <gemmery/family.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/status.hpp>

namespace gemmery::kernel {

// Whether an operand is a batch by pointers.
bool has_pointers(const GemmProblem& problem) noexcept;

// Fails, by the operand's name, if one is.
Status refuse_pointers(const GemmProblem& problem);

// Whether kernels of a family may run the problem at all: its form, then its epilogue.
Status check_form(const Family& family, const GemmProblem& problem);

// The first of the two, the quick form.
bool serves_form(const Family& family, const GemmProblem& problem) noexcept;

}  // namespace gemmery::kernel
