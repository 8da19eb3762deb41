// SPDX-License-Identifier: Apache-2.0
// Whether a thread's channels are contiguous and aligned in memory. A problem does not have the
// alignment of channels of several groups, so each launch determines it.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/problem.hpp>

#include <cstdint>

#include "device/abi/depthwise_design.hpp"

namespace gemmery::templates {

// All 0: the result is that for aligned addresses.
struct DepthwiseAddresses {
  std::uintptr_t a = 0;
  std::uintptr_t b = 0;
  std::uintptr_t c = 0;
  std::uintptr_t out = 0;
};
DepthwiseAddresses addresses_of(const GemmArguments& arguments) noexcept;

// Checks A, a wgrad's B, and out.
bool has_wide_channels(const abi::DepthwiseDesign& design, const GemmProblem& problem,
                       const DepthwiseAddresses& addresses = {}) noexcept;
bool has_wide_c(const abi::DepthwiseDesign& design, const GemmProblem& problem,
                const DepthwiseAddresses& addresses = {}) noexcept;

}  // namespace gemmery::templates
