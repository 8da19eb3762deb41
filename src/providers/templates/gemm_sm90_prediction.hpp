// SPDX-License-Identifier: Apache-2.0
// How fast an sm90 kernel is on a problem: what discovery sorts by.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include "providers/templates/gemm_sm90_design.hpp"

namespace gemmery::templates {

// Microseconds of one launch. `rules` and `tile` must serve the problem.
double predict_sm90_us(const GemmProblem& problem, const OperandRules& rules, const Sm90Tile& tile,
                       const DeviceInfo& device) noexcept;

}  // namespace gemmery::templates
