// SPDX-License-Identifier: Apache-2.0
// An estimate of the times of cuBLASLt's algorithms, which its heuristics order but do not time.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include <vector>

#include "providers/cublaslt/answers.hpp"

namespace gemmery::cublaslt {

// One time for each choice, in microseconds, ascending as the heuristics order them.
std::vector<double> predict_us(const GemmProblem& problem, const DeviceInfo& device,
                               const std::vector<Choice>& choices);

}  // namespace gemmery::cublaslt
