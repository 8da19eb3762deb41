// SPDX-License-Identifier: Apache-2.0
// Constraints that several families check on a query. Each function returns the failed constraint
// in words, or an empty string.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/target.hpp>

#include <span>
#include <string>
#include <string_view>

namespace gemmery::templates {

bool contains(std::span<const DType> dtypes, DType dtype) noexcept;

// The device must run code for one of the targets, which ascend.
std::string find_device_failure(std::span<const Target> targets, const DeviceInfo& device);

// The family must support the types of out and C.
std::string find_output_failure(std::span<const DType> outputs, const GemmProblem& problem);
std::string find_output_failure(std::span<const DType> outputs, std::span<const DType> addends,
                                const GemmProblem& problem);

std::string find_math_failure(const GemmProblem& problem);

// The constraints of families that multiply on CUDA cores: the device, the accumulator, the types
// of out and C, native math. `outputs`: the types of out for the problem's operands and
// accumulator, none if these are not multiplied.
std::string find_cuda_core_failure(std::span<const DType> outputs, const GemmProblem& problem,
                                   const DeviceInfo& device);

// The text for a problem with more of `what` (tiles of some size) than 31 bits can count.
std::string too_many(std::string_view what, const GemmProblem& problem);

}  // namespace gemmery::templates
