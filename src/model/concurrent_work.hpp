// SPDX-License-Identifier: Apache-2.0
// The time of work that is done at the same time.
#pragma once

#include <cmath>

namespace gemmery::model {

// The time of concurrent work that slows each other down: the longest time, and more if others are
// similar, by 19 % if two are equal. Two square roots, no call of std::pow.
inline double beside(double x, double y, double z = 0) noexcept {
  const auto fourth = [](double value) { return (value * value) * (value * value); };
  return std::sqrt(std::sqrt(fourth(x) + fourth(y) + fourth(z)));
}

}  // namespace gemmery::model
