// SPDX-License-Identifier: Apache-2.0
// The targets of kernels that use no instruction of a single architecture.
#pragma once

#include <gemmery/target.hpp>

#include <array>

namespace gemmery::runtime {

// Code for one of these runs on every later device of the same major version.
inline constexpr std::array portable_targets{Target{80},  Target{86},  Target{89},
                                             Target{90},  Target{100}, Target{103},
                                             Target{110}, Target{120}, Target{121}};

}  // namespace gemmery::runtime
