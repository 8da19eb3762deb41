// SPDX-License-Identifier: Apache-2.0
// Searches for one planted fault on one device, in random trials or in a few selected problems.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gemmery/kernel.hpp>

#include "tests/conformance/device_faults.hpp"

namespace gemmery::conformance {

struct Hunt {
  Device device;
  std::int64_t most_cases = 0;  // in the last round
  std::uint64_t seed = 0;
  std::int64_t first_cases = 1;  // in the first round
};

// Runs rounds of random trials with new problems, each round twice as many as the previous one,
// until one fails. Returns the failure, or "". Each round of a chained kernel begins with a chain
// of launches.
std::string hunt_at_random(const Kernel& kernel, const Hunt& hunt);

// Runs problems without guard bands, so that memory beyond an operand is not allocated and a
// sanitizer reports accesses to it. Returns the first failure, or "".
std::string hunt_at_edges(const Kernel& kernel, Device device, std::uint64_t seed);

// The problems of `hunt_at_edges`.
std::vector<std::string> edge_lines(SoundKernel kernel);

}  // namespace gemmery::conformance
