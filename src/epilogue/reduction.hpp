// SPDX-License-Identifier: Apache-2.0
// The steps of reductions on the host.
#pragma once

#include <gemmery/epilogue.hpp>

#include <cmath>
#include <limits>

#include "epilogue/math.hpp"

namespace gemmery::epilogue {

// The reduction of no elements.
template <class T>
T start_of(Reduction kind) noexcept {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  if (kind == Reduction::max) return -infinity;
  return kind == Reduction::min ? infinity : T(0);
}

// An element as a reduction of itself.
template <class T>
T reduced(Reduction kind, T x) noexcept {
  return kind == Reduction::amax ? std::fabs(x) : x;
}

// The reduction of the elements of two.
template <class T>
T combine(Reduction kind, T x, T y) noexcept {
  if (kind == Reduction::sum) return x + y;
  return kind == Reduction::min ? math::min(x, y) : math::max(x, y);
}

}  // namespace gemmery::epilogue
