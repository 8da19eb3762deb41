// SPDX-License-Identifier: Apache-2.0
// What kernels that ask for nothing of one architecture are compiled for.
#pragma once

#include <gemmery/target.hpp>

#include <array>

namespace gemmery::runtime {

// Code for one of them runs on every later device of its major version.
inline constexpr std::array portable_targets{Target{80},  Target{86},  Target{89},
                                             Target{90},  Target{100}, Target{103},
                                             Target{110}, Target{120}, Target{121}};

}  // namespace gemmery::runtime
