// SPDX-License-Identifier: Apache-2.0
// The rows of a table that a short run checks. GEMMERY_SOAK=1 checks all of them.
#pragma once

#include <cstdlib>
#include <random>

#include "tests/support/random_seed.hpp"

namespace gemmery::tests {

// Takes the first row, so that no test is empty, and one in `one_in` of the others: which, the
// seed of the run decides.
class RowSample {
 public:
  explicit RowSample(unsigned one_in = 2) : one_in_(one_in) {}

  bool takes_next() {
    const bool is_first = asked_++ == 0;
    return is_first || takes_all_ || random_() % one_in_ == 0;
  }

 private:
  const unsigned one_in_;
  const bool takes_all_ = std::getenv("GEMMERY_SOAK") != nullptr;
  unsigned asked_ = 0;
  std::mt19937_64 random_{random_seed()};
};

}  // namespace gemmery::tests
