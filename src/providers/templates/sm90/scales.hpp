// SPDX-License-Identifier: Apache-2.0
// Scales of blocks along k in sm90 kernels of 8-bit floats.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>

#include <optional>
#include <string>

#include "device/abi/sm90_params.hpp"
#include "providers/templates/sm90/prediction.hpp"

namespace gemmery::templates {

// The first constraint on scales that all kernels fail, in words; empty if there are none or
// kernels take them.
std::string find_sm90_scale_failure(const GemmProblem& problem);

// The candidate with the scales of the problem, in fewer stages; nothing if it is not legal with
// them.
std::optional<Sm90Candidate> with_scales(const Sm90Candidate& candidate, const OperandRules& rules,
                                         const GemmProblem& problem);

// Success if a kernel's parts of k, and the vectors that it reads, suffice for the problem's
// blocks.
Status check_sm90_scales(const Sm90Tile& tile, const OperandRules& rules,
                         const GemmProblem& problem);

// The parameters of a launch; `is_turned`: the kernel computes out^T.
abi::Sm90Scales sm90_scales(const GemmArguments& arguments, bool is_turned);

}  // namespace gemmery::templates
