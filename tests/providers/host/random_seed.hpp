// SPDX-License-Identifier: Apache-2.0
// The seed of this run's random inputs, printed once; GEMMERY_TEST_SEED repeats a run.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace gemmery::host {

inline std::uint32_t test_seed() {
  static const std::uint32_t seed = [] {
    const char* text = std::getenv("GEMMERY_TEST_SEED");
    const auto chosen = text != nullptr ? static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10))
                                        : std::random_device{}();
    std::printf("GEMMERY_TEST_SEED=%u\n", chosen);
    return chosen;
  }();
  return seed;
}

}  // namespace gemmery::host
