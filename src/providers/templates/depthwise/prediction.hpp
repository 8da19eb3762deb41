// SPDX-License-Identifier: Apache-2.0
// Predicted times of depthwise kernels.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include "providers/templates/depthwise/design.hpp"

namespace gemmery::templates {

// The instructions of a thread for one pixel of one channel.
double depthwise_instructions(const abi::DepthwiseDesign& design, const Convolution& convolution,
                              bool is_wide) noexcept;

double predict_depthwise_us(const DepthwiseTile& tile, const OperandRules& rules,
                            const GemmProblem& problem, const DeviceInfo& device);

}  // namespace gemmery::templates
