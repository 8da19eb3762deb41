// SPDX-License-Identifier: Apache-2.0
// The peak rate of a GPU for a problem, by its data sheet.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

namespace gemmery::model {

// Multiply-adds of the problem per clock and multiprocessor, by the fastest unit for its types.
int peak_rate(const GemmProblem& problem, const DeviceInfo& device) noexcept;

}  // namespace gemmery::model
