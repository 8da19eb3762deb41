// SPDX-License-Identifier: Apache-2.0
// The time of an emitted epilogue's arithmetic in memory-bound kernels.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

namespace gemmery::templates {

// 0 for the default program.
double epilogue_us(const GemmProblem& problem, const DeviceInfo& device);

}  // namespace gemmery::templates
