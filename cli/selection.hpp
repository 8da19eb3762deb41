// SPDX-License-Identifier: Apache-2.0
// The kernels of a command: those that serve a problem, narrowed by --kernel, --provider,
// --design and --target.
#pragma once

#include <string>
#include <vector>

#include <gemmery/discovery.hpp>
#include <gemmery/problem.hpp>

#include "cli/command_line.hpp"
#include "cli/device_choice.hpp"

namespace gemmery::cli {

// The filter of --target, --provider and --design.
Filter filter_of(const Options& options);

// The kernel with a name; throws Error (invalid_argument) if there is none.
Kernel kernel_of_name(const std::string& name);

// Returns the kernels of --kernel if given, else those that discovery returns, best first. At most
// `most`; 0: all. Throws Error (unsupported), with the reasons, if none fits or a named kernel does
// not.
std::vector<Kernel> select_kernels(const Options& options, const GemmProblem& problem,
                                   const ChosenDevice& device, int most);

// Prints one line on standard error if padded operands would allow a much faster kernel, unless the
// command names kernels.
void tell_cliff(const Options& options, const GemmProblem& problem, const ChosenDevice& device);

// The reasons why nothing serves a problem, one per line.
std::string reasons_text(const Explanation& explanation);

}  // namespace gemmery::cli
