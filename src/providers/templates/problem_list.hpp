// SPDX-License-Identifier: Apache-2.0
// Lists of problems in the families whose kernels take one among a launch's parameters.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/groups.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>

#include <string>

#include "device/abi/problem_list.hpp"
#include "runtime/launch_plan.hpp"

namespace gemmery::templates {

bool is_list(const Groups& groups) noexcept;

// What no kernel here can do with a list, in words; empty if some do.
std::string find_list_failure(const GemmProblem& problem);

// How a kernel takes the problems: the layouts of its operands, its tile, and whether it computes
// the transpose of out.
struct ListedKernel {
  OperandRules rules;
  int tile_m;
  int tile_n;
  bool is_turned;
};

// Makes abi::ProblemList, or ProblemListWithC where there is a C, the kernel's parameters; returns
// the tiles of all problems. Throws Error (unsupported) by name for a matrix whose lines are too
// far apart for it.
unsigned set_problem_list(const GemmArguments& arguments, const ListedKernel& kernel,
                          runtime::LaunchPlan& plan);

}  // namespace gemmery::templates
