// SPDX-License-Identifier: Apache-2.0
// The approximate functions, computed in double.
#include "emulator/arithmetic/approximation.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

#include "emulator/arithmetic/float_arithmetic.hpp"

namespace gemmery::emulator {
namespace {

float narrowed(double value) noexcept { return canonical(static_cast<float>(value)); }

// Flushes a f64 result and cuts its fraction to 20 bits, because MUFU.RCP64H and MUFU.RSQ64H leave
// the lower word zero.
double flushed(double value) noexcept {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0, value) : value;
}
double upper_word(double value) noexcept {
  if (value != value) return std::bit_cast<double>(std::uint64_t{0x7fffffff00000000});
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(flushed(value)) &
                               ~std::uint64_t{0xffffffff});
}

}  // namespace

float approximate_reciprocal(float a) noexcept { return narrowed(1.0 / a); }
float approximate_square_root(float a) noexcept {
  return narrowed(std::sqrt(static_cast<double>(a)));
}
float approximate_reciprocal_root(float a) noexcept {
  return narrowed(1.0 / std::sqrt(static_cast<double>(a)));
}

float approximate_quotient(float a, float b) noexcept {
  const float size = std::fabs(b);
  // A reciprocal below the normal numbers is flushed to zero; infinity times that zero is NaN.
  if (size > 0x1p126f && std::isfinite(b)) {
    const float zero = std::signbit(b) ? -0.0f : 0.0f;
    return canonical(a * zero);
  }
  return narrowed(static_cast<double>(a) / b);
}
float full_range_quotient(float a, float b) noexcept {
  return narrowed(static_cast<double>(a) / b);
}

float approximate_exp2(float a) noexcept { return narrowed(std::exp2(static_cast<double>(a))); }
float approximate_exp2_of_f16(float a) noexcept {
  const double exact = std::exp2(static_cast<double>(a));
  return exact < 0x1p-14 ? static_cast<float>(std::trunc(exact * 0x1p24) * 0x1p-24)
                         : narrowed(exact);
}
float approximate_log2(float a) noexcept { return narrowed(std::log2(static_cast<double>(a))); }
float approximate_sine(float a) noexcept { return narrowed(std::sin(static_cast<double>(a))); }
float approximate_cosine(float a) noexcept { return narrowed(std::cos(static_cast<double>(a))); }
float approximate_tanh(float a) noexcept { return narrowed(std::tanh(static_cast<double>(a))); }

double approximate_reciprocal(double a) noexcept { return upper_word(1.0 / flushed(a)); }
double approximate_reciprocal_root(double a) noexcept {
  return upper_word(1.0 / std::sqrt(flushed(a)));
}

}  // namespace gemmery::emulator
