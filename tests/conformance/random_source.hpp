// SPDX-License-Identifier: Apache-2.0
// The seed of a test run, and random choices from it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <span>
#include <string>

#include "api/random_numbers.hpp"

namespace gemmery::conformance {

// GEMMERY_TEST_SEED if it is set, else a random seed.
inline std::uint64_t test_seed() {
  const char* const text = std::getenv("GEMMERY_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : api::fresh_seed();
}

// Whether the full counts are requested (GEMMERY_SOAK).
inline bool is_soak() {
  const char* const text = std::getenv("GEMMERY_SOAK");
  return text != nullptr && std::string(text) == "1";
}

// A sequence of random choices; the same seed gives the same sequence.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : seed_(seed) {}

  std::uint64_t bits() { return api::random_bits(seed_, next_++); }
  // A number from least to most, both included.
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool percent(int chance) { return between(1, 100) <= chance; }
  double normal() { return api::standard_normal(bits()); }

  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[between(0, static_cast<std::int64_t>(values.size()) - 1)];
  }
  template <class List>
  const auto& one_of(const List& values) {
    return values[static_cast<std::size_t>(
        between(0, static_cast<std::int64_t>(values.size()) - 1))];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t next_ = 0;
};

}  // namespace gemmery::conformance
