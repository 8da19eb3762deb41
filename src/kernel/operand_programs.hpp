// SPDX-License-Identifier: Apache-2.0
// Programs of A and B as part of kernels: which serve which problem, the reason if they do not, and
// their place in names.
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/status.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace gemmery::kernel {

// The programs of a kernel made for this problem.
OperandProgramsId operand_programs(const GemmProblem& problem);

// True if a kernel with these programs runs a problem: the same programs on operands with the same
// layouts.
bool serves_programs(OperandProgramsId kernel, const GemmProblem& problem) noexcept;

// The same, with the difference in words.
Status check_programs(OperandProgramsId kernel, const GemmProblem& problem);

// The refusal of a family without programs, with the node.
std::string refuse_programs(const GemmProblem& problem);

// "_a-0123456789ab_b-0123456789ab"; empty without programs.
std::string programs_suffix(OperandProgramsId programs);

// Removes such a suffix from a name. nullopt if it names programs that this process does not know.
std::optional<OperandProgramsId> take_programs_suffix(std::string_view& name);

}  // namespace gemmery::kernel
