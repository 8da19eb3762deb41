// SPDX-License-Identifier: Apache-2.0
// Scales and zero points that kernels read in their main loop: in designs, in source, in launches.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>

#include <cstdint>
#include <string>

#include "device/abi/companions.hpp"

namespace gemmery::templates {

abi::CompanionTypes companion_types(const CompanionRules& rules) noexcept;

// Their initialiser in a kernel's source.
std::string companions_text(const abi::CompanionTypes& types);

// `k`: the operand's extent along k.
abi::CompanionsParams companions_params(const OperandCompanions& types,
                                        const BoundCompanions& memory, std::int64_t k);

// Divides by a block's extent; 0 reaches over the whole extent.
abi::FastDivisor block_divisor(std::int32_t block) noexcept;

}  // namespace gemmery::templates
