// SPDX-License-Identifier: Apache-2.0
// Searches for one planted fault on one device: in random trials, or in a few problems at its
// edges.
#pragma once

#include <cstdint>
#include <string>

#include <gemmery/kernel.hpp>

namespace gemmery::conformance {

struct Hunt {
  Device device;
  std::int64_t most_cases = 0;  // of the last round
  std::uint64_t seed = 0;
  std::int64_t first_cases = 1;  // of the first round
};

// Rounds of random trials, each of twice as many as the one before and with fresh problems, until
// one fails. Returns how; empty where none does. Chained kernels run in a chain of launches first.
std::string hunt_at_random(const Kernel& kernel, const Hunt& hunt);

// Runs problems without guard bands, so that what lies beyond an operand is nobody's memory, as a
// sanitizer wants it. Returns how the first failed; empty where none does.
std::string hunt_at_edges(const Kernel& kernel, Device device, std::uint64_t seed);

}  // namespace gemmery::conformance
