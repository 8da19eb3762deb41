// SPDX-License-Identifier: Apache-2.0
// An epilogue in a kernel's source, and its run-time half: where its operands lie, its numbers, the
// schedule and the scratch memory of its reductions.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/epilogue.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/status.hpp>

#include <string>
#include <string_view>

#include "device/abi/epilogue.hpp"
#include "runtime/launch_plan.hpp"

namespace gemmery::templates {

// What of the problem's epilogue no kernel here does: a reduction of nothing, for which nothing is
// launched that could write it.
Status check_carried(const GemmProblem& problem);

// What stands in a kernel's source for its epilogue.
struct EpilogueText {
  std::string head;        // the emitted struct; empty for the default program
  std::string parameters;  // the type that the kernel takes
  std::string call;        // the device function with its template arguments
};

// `parameters` and `function` are those of the default program.
EpilogueText epilogue_text(const Kernel& kernel, bool is_turned, std::string_view parameters,
                           std::string_view function);

// Appends abi::EpilogueParams behind what the plan holds, as abi::ProgramParams has it, and asks
// for the workspace. `is_turned`: the kernel computes the transpose of out, and `regions` are those
// of what it computes.
void append_epilogue_parameters(const GemmArguments& arguments, EpilogueId epilogue, bool is_turned,
                                const abi::RegionGrid& regions, runtime::LaunchPlan& plan);

}  // namespace gemmery::templates
