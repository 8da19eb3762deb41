// SPDX-License-Identifier: Apache-2.0
// f64 in the directed rounding modes.
#include "emulator/arithmetic/float_arithmetic.hpp"

namespace gemmery::emulator {
namespace {

// NaN operands and invalid operations have the same result in all rounding modes.
bool is_ordinary(double result) noexcept { return result == result; }

}  // namespace

double add(double a, double b, Rounding rounding) noexcept {
  const double nearest = a + b;
  if (rounding == Rounding::nearest_even || !is_ordinary(nearest)) return nearest;
  const Quad wide_a = a, wide_b = b;
  return round_to<double>(zero_sum(wide_a, wide_b, sum_to_odd(wide_a, wide_b), rounding), rounding);
}

double multiply(double a, double b, Rounding rounding) noexcept {
  const double nearest = a * b;
  if (rounding == Rounding::nearest_even || !is_ordinary(nearest)) return nearest;
  return round_to<double>(static_cast<Quad>(a) * static_cast<Quad>(b), rounding);
}

double fma(double a, double b, double c, Rounding rounding) noexcept {
  const double nearest = std::fma(a, b, c);
  if (rounding == Rounding::nearest_even || !is_ordinary(nearest)) return nearest;
  const Quad product = static_cast<Quad>(a) * static_cast<Quad>(b);
  const Quad wide_c = c;
  return round_to<double>(zero_sum(product, wide_c, sum_to_odd(product, wide_c), rounding),
                          rounding);
}

double divide(double a, double b, Rounding rounding) noexcept {
  const double nearest = a / b;
  if (rounding == Rounding::nearest_even || !is_ordinary(nearest) || b == 0) return nearest;
  return round_to<double>(static_cast<Quad>(a) / static_cast<Quad>(b), rounding);
}

double square_root(double a, Rounding rounding) noexcept {
  const double nearest = std::sqrt(a);
  if (rounding == Rounding::nearest_even || !is_ordinary(nearest) || nearest == 0 ||
      std::isinf(nearest))
    return nearest;
  // The square, and its difference to `a`, are exact in 113 bits. A root is never negative.
  const Quad missing =
      static_cast<Quad>(a) - static_cast<Quad>(nearest) * static_cast<Quad>(nearest);
  if (missing < 0 && rounding != Rounding::up) return std::nextafter(nearest, 0.0);
  if (missing > 0 && rounding == Rounding::up) return std::nextafter(nearest, HUGE_VAL);
  return nearest;
}

}  // namespace gemmery::emulator
