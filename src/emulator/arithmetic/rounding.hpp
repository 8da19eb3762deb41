// SPDX-License-Identifier: Apache-2.0
// The rounding modes of PTX, and how each one rounds an exact result to a narrower binary format.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace gemmery::emulator {

enum class Rounding : std::uint8_t {
  nearest_even,  // .rn
  toward_zero,   // .rz
  down,          // .rm
  up,            // .rp
  nearest_away,  // .rna, only for tf32
};

// Wide enough for the exact product of two doubles.
#if defined(__SIZEOF_FLOAT128__)
__extension__ using Quad = __float128;
#else
using Quad = long double;
#endif
static_assert(sizeof(Quad) == 16);
__extension__ using UnsignedQuad = unsigned __int128;

template <class Float>
using FloatBits =
    std::conditional_t<sizeof(Float) == 4, std::uint32_t,
                       std::conditional_t<sizeof(Float) == 8, std::uint64_t, UnsignedQuad>>;

// a + b rounded to odd: if bits are lost, the last bit is set. Rounding the result once more, to a
// format of at least two bits less, equals rounding the exact sum, in every mode (Boldo and
// Melquiond, "Emulation of a FMA and correctly rounded sums", 2008). The error of the sum is
// computed by Knuth's algorithm, which is exact unless the sum overflows.
template <class Wide>
inline Wide sum_to_odd(Wide a, Wide b) noexcept {
  using Bits = FloatBits<Wide>;
  const Wide sum = a + b;
  const Wide second = sum - a;
  const Wide error = (a - (sum - second)) + (b - second);
  Bits bits = std::bit_cast<Bits>(sum);
  // The error of an infinite sum is NaN, for which both comparisons are false. The code has no &&
  // and no branches because it must vectorise.
  const Bits is_inexact = static_cast<Bits>(error > 0) | static_cast<Bits>(error < 0);
  const Bits points_inwards = static_cast<Bits>(error > 0) ^ static_cast<Bits>(sum > 0);
  const Bits step = is_inexact & ~bits & 1;
  bits += step - 2 * (step & points_inwards);
  return std::bit_cast<Wide>(bits);
}

// A zero sum of a and b: rounding down makes it negative unless both are +0.
template <class Float>
inline Float zero_sum(Float a, Float b, Float sum, Rounding rounding) noexcept {
  if (sum != 0 || rounding != Rounding::down) return sum;
  const auto top = static_cast<int>(8 * sizeof(Float) - 1);
  const bool is_negative =
      ((std::bit_cast<FloatBits<Float>>(a) | std::bit_cast<FloatBits<Float>>(b)) >> top) != 0;
  return is_negative ? -Float{0} : Float{0};
}

// Rounds `exact` (or a result of sum_to_odd) to the narrower type. Not for nearest_away.
template <class Narrow, class Wide>
inline Narrow round_to(Wide exact, Rounding rounding) noexcept {
  using Bits = FloatBits<Narrow>;
  const Narrow nearest = static_cast<Narrow>(exact);
  const Wide back = static_cast<Wide>(nearest);
  const bool is_negative = exact < 0;
  const bool is_above = back > exact;  // false for NaN
  const bool is_below = back < exact;
  Bits bits = std::bit_cast<Bits>(nearest);
  const bool wants_lower =
      rounding == Rounding::down || (rounding == Rounding::toward_zero && !is_negative);
  const bool wants_higher =
      rounding == Rounding::up || (rounding == Rounding::toward_zero && is_negative);
  if (is_above && wants_lower) bits = is_negative ? bits + 1 : bits - 1;
  if (is_below && wants_higher) bits = is_negative ? bits - 1 : bits + 1;
  return std::bit_cast<Narrow>(bits);
}

}  // namespace gemmery::emulator
