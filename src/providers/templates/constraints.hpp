// SPDX-License-Identifier: Apache-2.0
// What families here ask of a query alike: each answer is the constraint that failed, in words, or
// empty.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/target.hpp>

#include <span>
#include <string>
#include <string_view>

namespace gemmery::templates {

bool contains(std::span<const DType> dtypes, DType dtype) noexcept;

// A GPU that code for one of the targets, which ascend, runs on.
std::string find_device_failure(std::span<const Target> targets, const DeviceInfo& device);

// Types of out and C that the family writes and reads.
std::string find_output_failure(std::span<const DType> outputs, const GemmProblem& problem);

std::string find_math_failure(const GemmProblem& problem);

// Of a problem with more of `what` (tiles of some size) than 31 bits count.
std::string too_many(std::string_view what, const GemmProblem& problem);

}  // namespace gemmery::templates
