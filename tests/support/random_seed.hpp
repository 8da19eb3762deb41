// SPDX-License-Identifier: Apache-2.0
// The seeds of a test's random numbers. GEMMERY_TEST_SEED sets them, to repeat a run.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace gemmery::tests {

// GEMMERY_TEST_SEED, or `otherwise` if it is not set; prints it.
inline std::uint64_t announce_seed(std::uint64_t otherwise) {
  const char* const given = std::getenv("GEMMERY_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : otherwise;
  std::printf("GEMMERY_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// A new seed for each run.
inline std::uint64_t random_seed() {
  static const std::uint64_t seed = announce_seed(std::random_device{}());
  return seed;
}

// The seed of samples of kernels whose machine code is checked: registers, spills, instructions.
// These depend only on the kernel and the compiler, so a new sample in every short run could fail
// for a kernel that the change under test did not touch. Therefore the seed is fixed, except under
// GEMMERY_SOAK, whose large samples search all designs.
inline std::uint64_t compilation_seed() {
  static const std::uint64_t seed =
      std::getenv("GEMMERY_SOAK") != nullptr ? random_seed() : announce_seed(1);
  return seed;
}

}  // namespace gemmery::tests
