// SPDX-License-Identifier: Apache-2.0
// The kernels that run a problem, best first, with the source of their times.
#pragma once

#include <string>
#include <vector>

#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>

#include "cli/device_choice.hpp"
#include "cli/output.hpp"
#include "cli/problem_words.hpp"

namespace gemmery::cli {

// Writes a table as text; in other formats a record per kernel.
void write_ranking(const std::vector<RankedKernel>& kernels, const ProblemLine& line,
                   const ChosenDevice& device, const Options& options, Output& output);

// "times on sm_100 are estimated ..."; empty for devices whose model is fitted to measurements.
std::string estimation_note(const ChosenDevice& device);

// Prints "note: facts of NVIDIA GB10 that no source confirms: clock" on standard error; nothing if
// all are confirmed. A driver's facts always are.
void tell_unconfirmed(const ChosenDevice& device);

}  // namespace gemmery::cli
