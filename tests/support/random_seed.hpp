// SPDX-License-Identifier: Apache-2.0
// The seed of a test's random numbers: fresh each run and printed, or GEMMERY_TEST_SEED to run one
// again.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace gemmery::tests {

inline std::uint64_t random_seed() {
  static const std::uint64_t seed = [] {
    const char* const given = std::getenv("GEMMERY_TEST_SEED");
    const std::uint64_t value =
        given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
    std::printf("GEMMERY_TEST_SEED=%llu\n", static_cast<unsigned long long>(value));
    return value;
  }();
  return seed;
}

}  // namespace gemmery::tests
