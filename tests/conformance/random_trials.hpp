// SPDX-License-Identifier: Apache-2.0
// Random trials that fit a kernel's rules: shapes near multiples of its tiles, all layouts and
// alignments that it supports, positive and negative strides, broadcasts, empty extents, scalars, C
// in place.
#pragma once

#include <cstdint>
#include <string>

#include "api/trial.hpp"
#include "tests/conformance/random_source.hpp"

namespace gemmery::conformance {

struct TrialLimits {
  std::int64_t products = 1 << 18;  // limit of m·n·k·l
  std::int64_t depth = 4200;        // limit of k
  Device device = Device::cpu();
  // Draws grouped problems for all kernels. Grouped kernels always get them.
  bool groups = false;
};

api::Trial random_trial(const Kernel& kernel, Choices& choices, const TrialLimits& limits);

// The arguments after --replay that run this trial again.
std::string replay_words(const api::Trial& trial, const Kernel& kernel);

}  // namespace gemmery::conformance
