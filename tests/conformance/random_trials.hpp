// SPDX-License-Identifier: Apache-2.0
// Random trials that fit a kernel's rules: shapes around its tiles, every layout and alignment that
// it takes, strides of every sign, broadcasts, empty extents, scalars, C in place.
#pragma once

#include <cstdint>
#include <string>

#include "api/trial.hpp"
#include "tests/conformance/random_source.hpp"

namespace gemmery::conformance {

struct TrialLimits {
  std::int64_t products = 1 << 18;  // m·n·k·l at most
  std::int64_t depth = 4200;        // k at most
  Device device = Device::cpu();
  // Grouped problems for all kernels. Kernels of groups get these in any case.
  bool groups = false;
};

api::Trial random_trial(const Kernel& kernel, Choices& choices, const TrialLimits& limits);

// What runs this trial again: the words after --replay.
std::string replay_words(const api::Trial& trial, const Kernel& kernel);

}  // namespace gemmery::conformance
