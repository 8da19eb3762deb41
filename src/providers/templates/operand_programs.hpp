// SPDX-License-Identifier: Apache-2.0
// Programs of operands in a kernel's source and in its launches.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/kernel.hpp>

#include <string>

#include "runtime/launch_plan.hpp"

namespace gemmery::templates {

// The emitted structs and the type Programs, a gemmery::device::OperandPrograms; empty without
// programs.
std::string operand_programs_text(const OperandRules& rules);

// Appends the abi::OperandProgramParams of A and of B to the plan's parameters.
void append_operand_programs(const GemmArguments& arguments, runtime::LaunchPlan& plan);

}  // namespace gemmery::templates
