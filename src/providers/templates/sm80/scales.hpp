// SPDX-License-Identifier: Apache-2.0
// Scales and zero points of the operand that sm80 kernels decode.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>

#include <string>

#include "device/abi/companions.hpp"

namespace gemmery::templates {

// The first constraint on scales and zero points that all kernels fail, in words; empty if there
// are none or kernels take them.
std::string find_sm80_scale_failure(const GemmProblem& problem);

// The parameters of a launch whose kernel has these rules.
abi::GroupedCompanionsParams sm80_scale_params(const GemmArguments& arguments,
                                               const OperandRules& rules);

}  // namespace gemmery::templates
