// SPDX-License-Identifier: Apache-2.0
// Lists of problems in the families whose kernels take a list in the launch parameters.
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

// Why no kernel here supports a list, in words; empty if some do.
std::string find_list_failure(const GemmProblem& problem);

// The properties of a kernel on which a list depends: the layouts of its operands, its tile, and
// whether it computes the transpose of out.
struct ListedKernel {
  OperandRules rules;
  int tile_m;
  int tile_n;
  bool is_turned;
};

// Each returns the number of all tiles. The family must have found no failure (find_list_failure).
unsigned fill_problem_list(const GemmArguments& arguments, const ListedKernel& kernel,
                           abi::ProblemList& list);
unsigned fill_problem_list(const GemmArguments& arguments, const ListedKernel& kernel,
                           abi::ProblemListWithC& list);

// Sets the kernel's parameters: abi::ProblemList, or ProblemListWithC if there is a C. Returns the
// number of all tiles.
unsigned set_problem_list(const GemmArguments& arguments, const ListedKernel& kernel,
                          runtime::LaunchPlan& plan);

}  // namespace gemmery::templates
